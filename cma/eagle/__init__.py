"""Eagle: execution traces, skills with their outcomes, conflicts and decisions."""
