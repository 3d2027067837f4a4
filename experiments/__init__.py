"""Experiments on CMA: one module is one experiment, `python -m experiments` runs them.

An experiment is a plain function from typed settings to a `Result`; Hydra stays in `__main__`. What
a run leaves behind is described in `experiments.runs`; reports and claims read those files and
nothing else.
"""
