"""From the results of other experiments to the files of the Stage150 tree.

`collecting` turns tables into files of the declared forms, `surroundings` adds claims, environment
and machine, `private` knows what must not be among them, `building` adds gates and manifest.
"""
