"""Latency, memory and growth from thousands to millions of cells, beside other engines.

`texts` makes the cells and questions, `engines` are CMA and its peers under one protocol,
`measuring` times them in turn, `loading` opens each in a process of its own, `exact` ranks by
brute force, `tables` tells what was found.
"""
