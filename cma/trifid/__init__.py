"""Trifid: episode frames, replay evidence, signatures, and when frames are admissible."""
