"""Takes out of a text what must not leave the machine: absolute paths, host and user names.

What a published file may not hold at all is found by `reproductions.disclosing`, which is told the
names of this machine by `names_of_this_machine`.
"""

from __future__ import annotations

import getpass
import platform
import re
import tempfile
from pathlib import Path

_PATH = re.compile(r"(?<![\w.:/~])/(?:[\w.+@-]+/)+(?P<name>[\w.+@-]+)")
_SHORTEST_NAME = 4


def scrub(text: str, root: Path) -> str:
    """Return the text with the checkout as `.`, other absolute paths cut to their last part."""
    for place, shown in ((root, "."), (Path(tempfile.gettempdir()), "<tmp>"), (Path.home(), "~")):
        if len(str(place)) > 1:
            text = re.sub(rf"{re.escape(str(place))}(?=/|\b)", shown, text)
    text = _PATH.sub(lambda match: f".../{match['name']}", text)
    for name in (platform.node(), _user()):
        if len(name) >= _SHORTEST_NAME:
            text = re.sub(rf"\b{re.escape(name)}\b", "...", text)
    return text


def names_of_this_machine() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of this host and of its user, to be looked for and never to be written."""
    host = platform.node()
    return tuple(dict.fromkeys(filter(None, (host, host.partition(".")[0])))), (_user(),)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
