"""Conversations and collections with annotated evidence: where they are found, read, and made.

`sources` finds files and checks digests, `locomo` reads them, `evidence` understands evidence ids,
`audit` applies corrected labels, `generated` makes conversations from a seed. `documents` makes a
corpus of any document collection, `cranfield` and `beir` read two forms of them. `loading` chooses.
"""
