"""The sweep engine: features once, then every coefficient vector in arrays.

`features` reads the parts of every candidate from the store's own index; `ranks` counts the scores
above each evidence turn; `objectives` makes shares of the ranks; `designs` lays out coefficient
vectors; `lines` finds the exact best value along one coefficient; `choosing` keeps each
conversation out of the choice that it judges; `rerun` asks the audited `Memory.recall` again;
`budget` packs each question's cells under a token budget, and `packets` has `Memory.packet` agree.
"""
