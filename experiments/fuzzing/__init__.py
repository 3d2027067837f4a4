"""Hostile input for everything that reads what others wrote, made from a seed.

Each input is bytes, made by its number alone, so that any one of them can be made again. A target
reads it; only the errors that the target promises may come back.
"""
