"""What all specs have in common: frozen, validated, and errors in one sentence."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from typing import Annotated, Any, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from qbkit.errors import SpecError
from qbkit.suggestions import did_you_mean

NAMES, NUMBER = "must be names with their values", "must be a number"
KINDS = {
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), NAMES),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    **dict.fromkeys(("float_type", "float_parsing"), NUMBER),
    **dict.fromkeys(
        ("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "must be a whole number"
    ),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    "string_type": "must be a text",
    "finite_number": "must be a finite number",
    "string_pattern_mismatch": "must begin with a letter or digit and have only these and _ . + -",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must not be empty",
    "too_long": "must have at most {max_length} entries, not {actual_length}",
    "missing": "is missing",
    "extra_forbidden": "is no field",
    "frozen_instance": "cannot be changed; make another one with the value",
    "union": "must be a number, a text, true or false",
}
"""What pydantic says in Python's words, in those of a spec file."""
MOST_MISTAKES = 5
"""So many mistakes are reported at once; more have a common cause."""
TYPES = ("str", "int", "float", "bool")
"""The types of an option, as pydantic names them behind its place."""


def of_python(value: Any) -> object:
    """NumPy's numbers as Python's, others as is."""
    return value.item() if getattr(value, "shape", None) == () else value


def boolean(value: Any) -> object:
    """``True``, ``TRUE``, ``false``, … as a boolean, NumPy's numbers as Python's, others as is."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower(), value)
    return of_python(value)


OptionValue = Annotated[str | int | float | bool, BeforeValidator(boolean)]
"""The value of an option."""


class Spec(BaseModel):
    """Common behaviour: frozen, no unknown fields, errors in one sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __init__(self, *values: Any, **data: Any) -> None:
        kind = type(self)
        if values:
            fields = ", ".join(kind.model_fields)
            raise SpecError(f"{kind.__name__} takes its values by name, as in name=value: {fields}")
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise _spec_error(kind, error) from None

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            raise _spec_error(type(self), error) from None

    @model_validator(mode="before")
    @classmethod
    def _no_flags_for_numbers(cls, data: Any) -> Any:
        """Refuse true and false for a number, of which pydantic would make 1 and 0."""
        for name in _numbers(cls) if isinstance(data, dict) else ():
            for flag in _flags(data.get(name)):
                verb = "is" if isinstance(data[name], bool) else "has"
                raise ValueError(f"{name} {verb} {_shown(flag)}; give a number")
        return data


@cache
def _numbers(kind: type[BaseModel]) -> list[str]:
    """Names of the fields that are or hold numbers, and may not be true or false."""
    kinds = {name: _kinds(field.annotation) for name, field in kind.model_fields.items()}
    return [name for name, has in kinds.items() if {int, float} & has and bool not in has]


def _kinds(annotation: Any) -> set[Any]:
    """The types in a type: in a union, or of the entries of a list."""
    inner = get_args(annotation)
    return set().union(*map(_kinds, inner)) if inner else {annotation}


def _flags(value: Any) -> Iterator[bool]:
    """The value if it is true or false, or those in its lists."""
    if isinstance(value, bool):
        yield value
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _flags(inner)


class TextSpec(Spec):
    """A spec that JSON holds as its text, and for which its text stands wherever it is a field."""

    @classmethod
    @abstractmethod
    def of(cls, text: str) -> Self:
        """What a text describes; raises ValueError for others. ``str`` gives the text back."""

    @model_validator(mode="wrap")
    @classmethod
    def _of_text(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        return cls.of(value) if isinstance(value, str) else handler(value)

    @model_serializer
    def _text(self) -> str:
        return str(self)


def _spec_error(kind: type[BaseModel], error: ValidationError) -> SpecError:
    """Every mistake in a spec, in one sentence each."""
    found = _without_unions(error.errors(include_url=False))
    # pydantic reports a list without a valid item as too short; report only the items' mistakes.
    around = {one["loc"][:depth] for one in found for depth in range(len(one["loc"]))}
    mistakes = [text for one in found if one["loc"] not in around for text in _mistakes(kind, one)]
    said = [f"{kind.__name__}{mistake}" for mistake in mistakes[:MOST_MISTAKES]]
    if more := len(mistakes) - len(said):
        said.append(f"and {more} more such mistakes")
    raised = SpecError("; ".join(said))
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
    message = in_words(found)
    if found["type"] == "value_error":
        return [f"{where}: {message}"]
    if found["type"] == "missing":
        return [f"{where} {in_words(found)}"]
    if found["type"] == "extra_forbidden":
        names = _fields(kind, parents)
        inside = [name for name in names if last in _fields(kind, [*parents, name])]
        near = f"; it belongs in {inside[0]}" if inside else did_you_mean(str(last), names)
        return [f"{parent} has no field {last}{near}"]
    return [f"{where} = {_shown(found.get('input'))}: {message}"]


def in_words(found: Mapping[str, Any]) -> str:
    """What one error of pydantic says, without Python's words."""
    message = str(found["msg"]).removeprefix("Value error, ")
    text = KINDS.get(found["type"], message[:1].lower() + message[1:])
    return text.format_map(found["ctx"]) if found["type"] in KINDS and "ctx" in found else text


def _shown(value: object) -> str:
    """A value on one line as a spec file has it, with quotes around a text; or its kind."""
    if value is None or isinstance(value, bool | list | tuple | dict):
        text = json.dumps(value, ensure_ascii=False, default=str)
    elif isinstance(value, str | int | float | date):
        text = repr(value) if isinstance(value, str) else str(value)
    else:
        text = f"({type(value).__name__})"
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
