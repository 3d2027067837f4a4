"""Writers at work on one store at once, and a checker that knows nothing of the library.

Children write, link, propose, approve, sweep, deliver and take snapshots together, and each notes
what was acknowledged to it. The checker reads the file with the standard library alone.
"""
