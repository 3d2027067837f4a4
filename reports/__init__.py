"""Tables, plots and one self-contained page, made from result files and from nothing else.

`tables` writes every table three times (CSV, Markdown, LaTeX) from one frame of texts, `plots`
draws, `sections` says what stands in the section of each experiment, `figures` gathers the headline
figures, `page` renders. No module here knows an expected value: what was not measured is said to be
missing.
"""
