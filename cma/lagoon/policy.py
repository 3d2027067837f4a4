"""Policies: how much evidence a candidate needs, and who may approve it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cma.orion.cells import Authority
from cma.values.validation import Identifier, Value

Count = Annotated[int, Field(strict=True, ge=1, le=1_000)]


class Policy(Value):
    """What admits derived memory (paper: policy authorisation, configured number of frames).

    frames: how many independent episode frames a claim needs. executions: how many execution
    traces a skill needs. approvers: names of callers who may approve (empty: whoever has the
    authority). authorities: of which authority an approver must be; a model may not approve unless
    it is named here. many_valued: predicates of which a subject may have several objects at once,
    so that two objects are no conflict.

    An approval is a precondition that software checks; it replaces no authentication.
    """

    name: Identifier = "default"
    frames: Count = 2
    executions: Count = 1
    approvers: tuple[Identifier, ...] = ()
    authorities: tuple[Authority, ...] = (Authority.USER,)
    many_valued: tuple[Identifier, ...] = ()

    def authorises(self, approver: str, authority: str) -> bool:
        """Tell whether this approver may approve under the policy."""
        named = not self.approvers or approver in self.approvers
        return named and authority in {each.value for each in self.authorities}
