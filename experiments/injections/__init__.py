"""Faults that are really injected into small stores, and how each row of the matrix is judged."""
