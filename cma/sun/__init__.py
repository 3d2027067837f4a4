"""Sun: a frozen language model, context vectors, and what of them reached it (paper: Sun).

Knows strings and tensors, never cells. Needs the extra `sun` (torch and transformers).
"""
