"""One gate for all scopes: what a viewer may see, and which cells may be linked.

A scope is `global` or `session:<id>`. A session sees its own cells and the global ones; the
global scope sees the global ones alone.
"""

from __future__ import annotations

from cma.values.errors import InvalidValueError, Reason
from cma.values.identity import is_normal

GLOBAL = "global"
SESSION_PREFIX = "session:"
MAX_LENGTH = 200


def checked_scope(scope: object) -> str:
    """Return the scope, or raise InvalidValueError that says how one is written."""
    if isinstance(scope, str):
        name = scope.removeprefix(SESSION_PREFIX)
        if scope == GLOBAL:
            return scope
        if name != scope and name.strip() and len(scope) <= MAX_LENGTH and is_normal(scope):
            return scope
    raise InvalidValueError(
        Reason.FIELD_INVALID,
        "not a scope",
        field="scope",
        value=scope,
        remedy="use 'global' or 'session:<id>' with an id of one printable line",
    )


def visible_scopes(viewer: str) -> tuple[str, ...]:
    """Return the scopes whose cells a viewer sees."""
    return (GLOBAL,) if viewer == GLOBAL else (viewer, GLOBAL)


def is_visible(scope: str, *, viewer: str) -> bool:
    """Tell whether a cell of `scope` may be shown to a viewer."""
    return scope in (GLOBAL, viewer)


def may_link(one: str, other: str) -> bool:
    """Tell whether cells of these scopes may be linked: never those of two sessions."""
    return one == other or GLOBAL in (one, other)
