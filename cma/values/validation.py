"""Pydantic at the border: frozen values, and one translation of its errors into ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from cma.values.clock import in_utc
from cma.values.errors import CmaError, InvalidValueError, Reason
from cma.values.identity import is_normal

MILLION = 1_000_000
MAX_ID_LENGTH = 500
_set = object.__setattr__
Model = TypeVar("Model", bound=BaseModel)

_REMEDIES: Mapping[str, str] = {
    "missing": "give this field",
    "extra_forbidden": "leave it out, or check its spelling",
    "greater_than_equal": "give a number within the range",
    "less_than_equal": "give a number within the range",
    "finite_number": "give a finite number",
    "float_type": "give a number",
    "int_type": "give a whole number",
    "string_type": "give text",
    "string_unicode": "give text without lone surrogates",
    "string_too_long": "shorten it, or split it into several cells",
    "string_too_short": "give some text",
    "enum": "use one of the names listed",
    "literal_error": "use one of the names listed",
    "dict_type": "give a mapping",
}


class Value(BaseModel):
    """A frozen value. Unknown fields are refused, so a misspelt one is never dropped.

    A value that comes in as a field or in a batch is validated again: `model_copy` and
    `model_construct` make values that nobody has looked at.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", revalidate_instances="always")


def _in_millionths(value: float) -> float:
    # Held to one millionth, so that hashed records need no float; + 0.0 turns -0.0 into 0.0.
    return round(value, 6) + 0.0


def _normal(text: str) -> str:
    if not is_normal(text):
        raise ValueError("must be in Unicode form NFC and hold no control character")
    return text


def checked_text(text: str) -> str:
    """Return the text as given; raise ValueError when it holds a lone surrogate."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError("a lone surrogate is no text: decode it properly first") from error
    return text


def _utc_field(value: object) -> datetime:
    return in_utc(value, field="time")


Share = Annotated[
    float,
    Field(strict=True, ge=0, le=1, allow_inf_nan=False),
    AfterValidator(_in_millionths),
]
"""A number from 0 to 1, held to one millionth."""

Identifier = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=500), AfterValidator(_normal)
]
"""One line of text that names something."""

UtcTime = Annotated[datetime, BeforeValidator(_utc_field)]
"""An instant; given with any zone, kept as UTC."""


def checked_id(value: object, *, field: str) -> str:
    """Return an id as text that can be looked up, or raise InvalidValueError."""
    if isinstance(value, str):
        value = str.__str__(value)  # a subclass may answer otherwise than its text
    if isinstance(value, str) and len(value) <= MAX_ID_LENGTH and is_normal(value):
        return value
    raise InvalidValueError(
        Reason.FIELD_INVALID,
        "not an id",
        field=field,
        value=value,
        remedy="give an id as text, as it was returned",
    )


def trusted(model: type[Model], fields: dict[str, Any]) -> Model:
    """Return a value made of fields that the store validated when they were written.

    `fields` holds every field of the model, in final form. It is what pydantic's `model_construct`
    ends in, without its walk over aliases and defaults, which costs ten times as much: a recall
    makes dozens of values.
    """
    value = model.__new__(model)
    _set(value, "__dict__", fields)
    _set(value, "__pydantic_fields_set__", set(fields))
    _set(value, "__pydantic_extra__", None)
    _set(value, "__pydantic_private__", None)
    return value


def millionths(value: float) -> int:
    """Return a share as the whole number that records hold."""
    return round(value * MILLION)


def share(held: int) -> float:
    """Return the share that a record holds as whole millionths."""
    return held / MILLION


def validated(make: Callable[[], Model]) -> Model:
    """Run a construction; raise InvalidValueError instead of pydantic's own error."""
    try:
        return make()
    except ValidationError as error:
        raise as_invalid_value(error) from error
    except RecursionError as error:
        raise nested_too_deep() from error


def nested_too_deep() -> InvalidValueError:
    """Return our error for a value so deeply nested that it cannot even be shown."""
    return InvalidValueError(
        Reason.FIELD_INVALID,
        "a value is nested too deep to be looked at",
        remedy="give plain values: text, numbers, lists and mappings of a few levels",
    )


def as_invalid_value(error: ValidationError, *, skip: int = 0) -> InvalidValueError:
    """Return our error for the first violation that pydantic reports; it names them all.

    skip: how many steps at the front of each path to leave out, such as the place in a list.
    """
    details = error.errors(include_url=False)
    first = details[0]
    found = _first_violation(details, skip)
    found.made_up = len(_made_up(first["type"], [str(step) for step in first["loc"][skip:]]))
    return found


def _made_up(kind: str, path: list[str]) -> str:
    """Return the end of a path that names what the caller named: an attribute, an unknown field."""
    if "attributes" in path:
        return ".".join(path[path.index("attributes") + 1 :])
    return path[-1] if kind == "extra_forbidden" and path else ""


def _first_violation(details: list[Any], skip: int) -> InvalidValueError:
    first = details[0]
    field, *others = (".".join(str(step) for step in item["loc"][skip:]) for item in details)
    cause: Any = first.get("ctx", {}).get("error")
    more = f"; also wrong: {', '.join(others)}" if others else ""
    if isinstance(cause, CmaError):
        return InvalidValueError(
            cause.reason,
            cause.message + more,
            field=field,
            value=cause.value if cause.value is not None else first["input"],
            remedy=cause.remedy,
        )
    reason = Reason.KIND_UNKNOWN if first["type"] == "enum" else Reason.FIELD_INVALID
    message = first["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:] + more
    remedy = _REMEDIES.get(first["type"], "see the field's documentation")
    return InvalidValueError(reason, message, field=field, value=first["input"], remedy=remedy)
