"""JSON Schemas (2020-12) of what the harness writes, made from its models and committed.

`python -m reproductions.schemas` writes them, `--check` says which are not what the models say.
Those of the library's own formats are in `cma.schemas`.
"""
