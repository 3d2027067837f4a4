"""Every check in the code of store, transitions and snapshots, and what fails without it."""
