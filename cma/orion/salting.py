"""Salt: what keeps a guess about an erased cell from being confirmed.

Ids and digests are made of content, so that the same payload has the same id everywhere. They stay
when a cell is erased, and whoever can guess every field of the cell can make the id of the guess
and compare. A salt is a field that nobody can guess. It is part of the cell, so that its id and the
digests of its revisions, of what it witnessed, of what was served of it and of the index that held
it all cover it, and it is erased with the cell.

The price: the same payload with another salt is another cell. What was written about the cell in
other records (a scene, a claim, a query) has ids and fingerprints that a salt does not cover.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

SALT = "salt"
SALT_BYTES = 32


def salted(
    metadata: Mapping[str, Any] | None = None,
    *,
    draw: Callable[[int], bytes] = secrets.token_bytes,
) -> dict[str, Any]:
    """Return a cell's metadata with a random salt among its attributes.

    draw: gives so many random bytes; a seeded generator's method makes ids repeatable in tests.
    """
    told = dict(metadata or {})
    attributes = {**told.get("attributes", {}), SALT: draw(SALT_BYTES).hex()}
    return {**told, "attributes": attributes}
