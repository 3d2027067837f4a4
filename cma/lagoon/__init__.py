"""Lagoon: proposals, approvals, and the one guarded transition to derived memory."""
