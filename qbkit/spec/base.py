"""What all specs have in common: frozen, validated, and errors in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from qbkit.errors import SpecError
from qbkit.suggestions import did_you_mean


class Spec(BaseModel):
    """Common behaviour: frozen, no unknown fields, errors in one sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise _spec_error(type(self), error) from None


def _spec_error(kind: type[BaseModel], error: ValidationError) -> SpecError:
    """Every mistake in a spec, in one sentence each."""
    found = error.errors(include_url=False)
    # pydantic reports a list without a valid item as too short; report only the items' mistakes.
    around = {one["loc"][:depth] for one in found for depth in range(len(one["loc"]))}
    mistakes = [text for one in found if one["loc"] not in around for text in _mistakes(kind, one)]
    raised = SpecError("; ".join(f"{kind.__name__}{mistake}" for mistake in mistakes))
    raised.mistakes = mistakes
    return raised


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
    value = repr(found.get("input"))
    value = value if len(value) <= 60 else value[:57] + "..."
    return [f"{where} = {value}: {message}"]


def _fields(kind: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """Names of the fields of a spec, or of the spec in it to which a path of fields leads."""
    for part in path:
        if isinstance(part, str) and part in kind.model_fields:
            inner: list[Any] = [kind.model_fields[part].annotation]
            while inner and not (isinstance(inner[0], type) and issubclass(inner[0], BaseModel)):
                inner = [*get_args(inner[0]), *inner[1:]]
            kind = inner[0] if inner else BaseModel
    return list(kind.model_fields)
