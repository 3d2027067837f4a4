"""The paper's claims as data, and how each is judged against what was measured here.

`results` reads run directories, `claims` reads `claims.yaml`, `judge` compares the two, and
`python -m reproductions` prints the table and writes `runs/claims.json`. Nothing in this package
runs an experiment or imports the code of one: it reads result files and nothing else.
"""
