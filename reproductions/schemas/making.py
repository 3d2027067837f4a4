"""From models to JSON Schemas, and the committed files as validators."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from reproductions.claims import ClaimsFile
from reproductions.inputs import CorruptInputError
from reproductions.judged import JudgedClaims
from reproductions.staging.forms import FORMS
from reproductions.written import FiguresFile, MachineRecord, ResultFile

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = Path(__file__).parent
MODELS: Mapping[str, type[BaseModel]] = {
    "result": ResultFile,
    "machine": MachineRecord,
    "figures": FiguresFile,
    "claims": ClaimsFile,
    "judged_claims": JudgedClaims,
    **{f"stage150/{kind}": form for kind, form in FORMS.items()},
}
"""Every format by the name of its schema."""
SPARSE = ("claims", "machine")
"""Formats in which what has a default may be left out."""


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema that the model of a format gives."""
    mode = "validation" if name in SPARSE else "serialization"
    _, made = models_json_schema([(MODELS[name], mode)], ref_template="#/$defs/{model}")  # type: ignore[list-item]
    root = MODELS[name].__name__
    definitions = dict(made["$defs"])
    body = definitions.pop(root)
    identity = {"$schema": DIALECT, "$id": f"urn:cma:{name.replace('/', ':')}:1"}
    return {**identity, **body, **({"$defs": definitions} if definitions else {})}


def written_form(schema: Mapping[str, Any]) -> str:
    """Return a schema as its committed file holds it."""
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def place(name: str) -> Path:
    """Return where the schema of a format is committed."""
    return FOLDER / f"{name}.json"


def outdated() -> list[str]:
    """Return the formats whose committed schema is not what their model gives."""
    return [
        name
        for name in MODELS
        if not place(name).is_file()
        or place(name).read_text(encoding="utf-8") != written_form(schema_of(name))
    ]


@functools.cache
def committed(name: str) -> Mapping[str, Any]:
    """Return a committed schema."""
    content: dict[str, Any] = json.loads(place(name).read_text(encoding="utf-8"))
    return content


@functools.cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(committed(name))


def check_schema(name: str, content: Any) -> None:
    """Raise CorruptInputError that names the first place at which content breaks a schema."""
    for problem in first_problem(name, content):
        raise CorruptInputError(problem)


def first_problem(name: str, content: Any) -> Iterator[str]:
    """Yield what is wrong with content by a committed schema: place and message, the first only."""
    for error in _validator(name).iter_errors(content):
        where = "/".join(str(part) for part in error.absolute_path) or "the file"
        yield f"{where}: {error.message[:200]}"
        return
