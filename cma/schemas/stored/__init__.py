"""The records of a snapshot as models: the canonical forms that the store hashes and keeps.

The store writes records by hand, for speed; these models say the same once more, so that anybody
can read a snapshot without this library. Shares are whole millionths, times UTC text, fractions
decimal text: a record holds no float. The schemas made from them lie beside, one a kind.
"""
