"""JSON Schemas (2020-12) of every format that the library writes, made from models and committed.

`values/` is what `--json` prints of a value; `stored/` is what a snapshot holds: its envelope and
its lines. `python -m cma.schemas` writes them, `--check` names those that are not up to date. A
schema says what this release writes; whether a record is what its id says is for `cma verify`.
"""
