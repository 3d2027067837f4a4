"""Rosette: context packets under a budget, the graph over three scales, snapshots."""
