"""Stage150: the form of the artifact tree, its gates, and the check of a tree made elsewhere.

The paper tells of 153 files and seven release gates and publishes neither. `catalogue.yaml` says of
each of our 153 files what it is; `evidence` and `forms` say what such a file holds; `gates` and
`integrity` compute the seven gates from the files alone; `manifest` seals them; `verifying` holds a
tree against all of that. `experiments.stage150` makes a tree from runs with the same functions, so
a gate has one meaning.
"""
