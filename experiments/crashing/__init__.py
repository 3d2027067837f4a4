"""Crashes on purpose: processes killed, disks that refuse, power that is cut, bytes that flip.

`steps` is the work that is interrupted, `script` runs it and says where a clean run stands,
`judging` says what is left of an interrupted one. `calls` is what a disk is asked to do, `watching`
sees it through SQLite's own interface and Python's (`sqlite_calls`, `python_calls`). One module
breaks one thing: `killing`, `cuts` (over the disk of `platter`), `failing` (with `faults`),
`flips`, `snapshots`; `parts` makes tables of what they count.
"""
