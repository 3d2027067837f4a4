"""Hydra configs; a package, so that they are found however the program is started."""
