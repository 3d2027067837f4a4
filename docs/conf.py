"""Sphinx settings of the documentation: Markdown pages in a theme that makes no requests."""

from __future__ import annotations

project = "Civilization Memory Architecture"
extensions = ["myst_parser"]
exclude_patterns = ["generate.py"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = project
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
highlight_language = "none"
