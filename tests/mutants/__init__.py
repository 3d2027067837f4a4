"""Rules of the contracts, each removed on purpose: the contract tests must notice every one."""
