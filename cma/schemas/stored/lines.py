"""The lines of a snapshot: a record, its type, and of an audit record the hash that seals it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, RootModel

from cma.rosette.snapshot_form import Sha256
from cma.schemas.stored.attendant import Attendant
from cma.schemas.stored.governed import Governed
from cma.schemas.stored.orion import AuditedRecord, CellRecord, LinkRecord, TraceRecord
from cma.schemas.stored.parts import Record


class CellLine(Record):
    """A line of a snapshot that holds a cell's revision."""

    record: CellRecord
    type: Literal["cell"]


class LinkLine(Record):
    """A line that holds a link."""

    record: LinkRecord
    type: Literal["link"]


class TraceLine(Record):
    """A line that holds a recall's trace."""

    record: TraceRecord
    type: Literal["trace"]


class AuditLine(Record):
    """A line that holds an audit record, with the hash that seals it."""

    hash: Sha256
    record: AuditedRecord
    type: Literal["audit"]


class GovernedLine(Record):
    """A line that holds a record that counts as memory."""

    record: Annotated[Governed, Field(discriminator="kind")]
    type: Literal["governed"]


class AttendantLine(Record):
    """A line that holds a record that stands beside memory."""

    record: Annotated[Attendant, Field(discriminator="kind")]
    type: Literal["attendant"]


Line = CellLine | LinkLine | TraceLine | AuditLine | GovernedLine | AttendantLine


class SnapshotLine(RootModel[Annotated[Line, Field(discriminator="type")]]):
    """Any line of a snapshot but the first."""
