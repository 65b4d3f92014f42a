"""What all specs have in common: frozen, validated, and errors in one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_serializer

from qbkit.errors import SpecError
from qbkit.suggestions import did_you_mean

KINDS = {
    "dict_type": "must be names with their values",
    "model_type": "must be names with their values",
    "model_attributes_type": "must be names with their values",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "union": "must be a number, a text, true or false",
}
"""What pydantic says in Python's words, in those of a spec file."""
TYPES = ("str", "int", "float", "bool")
"""The types of an option, as pydantic names them behind its place."""


def boolean(value: object) -> object:
    """``True``, ``TRUE``, ``false``, … as a boolean; any other value as it is."""
    words = {"true": True, "false": False}
    return words.get(value.lower(), value) if isinstance(value, str) else value


OptionValue = Annotated[str | int | float | bool, BeforeValidator(boolean)]
"""The value of an option."""


class Spec(BaseModel):
    """Common behaviour: frozen, no unknown fields, errors in one sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise _spec_error(type(self), error) from None


class TextSpec(Spec):
    """A spec that JSON holds as its text."""

    @model_serializer
    def _text(self) -> str:
        return str(self)


def _spec_error(kind: type[BaseModel], error: ValidationError) -> SpecError:
    """Every mistake in a spec, in one sentence each."""
    found = _without_unions(error.errors(include_url=False))
    # pydantic reports a list without a valid item as too short; report only the items' mistakes.
    around = {one["loc"][:depth] for one in found for depth in range(len(one["loc"]))}
    mistakes = [text for one in found if one["loc"] not in around for text in _mistakes(kind, one)]
    raised = SpecError("; ".join(f"{kind.__name__}{mistake}" for mistake in mistakes))
    raised.mistakes = mistakes
    return raised


def _without_unions(found: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """One error for a value of many types, where pydantic has one for each type."""
    errors: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for one in found:
        *place, last = one["loc"] or ("",)
        if last in TYPES and len(place) > 1:
            one = {**one, "loc": tuple(place), "type": "union"}
        errors.setdefault((*one["loc"], one["type"]), one)
    return list(errors.values())


def _mistakes(kind: type[BaseModel], found: Mapping[str, Any]) -> list[str]:
    """One pydantic error as texts that follow the name of the spec; several for an inner spec."""
    *parents, last = found["loc"] or ("",)
    parent = "".join(f".{part}" for part in parents)
    where = "".join(f".{part}" for part in found["loc"])
    inner = found.get("ctx", {}).get("error")
    if isinstance(inner, SpecError) and inner.mistakes:
        return [f"{where}{mistake}" for mistake in inner.mistakes]
    message = found["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    if found["type"] == "value_error":
        return [f"{where}: {message}"]
    if found["type"] == "missing":
        return [f"{where} is missing"]
    if found["type"] == "extra_forbidden":
        near = did_you_mean(str(last), _fields(kind, parents))
        return [f"{parent} has no field {last}{near}"]
    message = KINDS.get(found["type"], message)
    return [f"{where} = {_shown(found.get('input'))}: {message}"]


def _shown(value: object) -> str:
    """A value as it is written in a spec file; texts keep their quotes."""
    if value is None or isinstance(value, bool | list | tuple | dict):
        text = json.dumps(value, ensure_ascii=False, default=str)
    else:
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _fields(kind: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """Names of the fields of a spec, or of the spec in it to which a path of fields leads."""
    for part in path:
        if isinstance(part, str) and part in kind.model_fields:
            inner: list[Any] = [kind.model_fields[part].annotation]
            while inner and not (isinstance(inner[0], type) and issubclass(inner[0], BaseModel)):
                inner = [*get_args(inner[0]), *inner[1:]]
            kind = inner[0] if inner else BaseModel
    return list(kind.model_fields)
