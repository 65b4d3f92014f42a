"""Sweeps: the product of the values of any fields, as experiments with coordinates."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from qbkit.errors import SpecError
from qbkit.spec import Experiment, Flow, presets
from qbkit.spec.base import in_words, of_python
from qbkit.spec.bottleneck import BUFFERS, LOSSES, require_loss
from qbkit.spec.flow import LATER_FIELDS, parsed
from qbkit.spec.spec_file import of_file, read_fields
from qbkit.suggestions import did_you_mean

PRESET = "bottleneck.preset"
"""A field that stands for many, as in `Bottleneck`: those of the base win."""
Value = Annotated[str | int | float | bool, BeforeValidator(of_python)]
OPTIONS = (["options"], ["qdisc_options"], ["return_qdisc_options"])
"""Fields that hold any names."""
FORM = "name: …, base: {…}, sweep: {field: [values]}"


@dataclass(frozen=True)
class Point:
    """One experiment of a sweep, and its index along each swept field."""

    index: tuple[int, ...]
    experiment: Experiment


class Sweep(BaseModel):
    """A base experiment and the values of the fields that are swept.

    ``sweep`` maps a dotted field of an Experiment (``bottleneck.buffer_bdp``, ``flows.0``,
    ``flows.0.options.pacing``, ``seed``) to its values; every combination is run. The value of a
    flow is a text as in `Flow`; it sets stack, controller and what follows the ``?``, and the flow
    keeps the other fields and options of the base. The order of the fields is the order of the
    cube's dimensions and does not change any run. Raises SpecError for a field that does not exist,
    a field without values, two fields that set the same thing, two equal runs, and any invalid
    experiment of the product.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=200)
    """Name of the sweep."""
    base: dict[str, Any]
    """Fields of the Experiment that all runs share."""
    sweep: dict[str, list[Value]]
    """Field → its values."""
    unordered: tuple[str, str] | None = None
    """Two fields with the same values whose order does not matter: (a, b) is run, (b, a) is not.
    ``[flows.0, flows.1]`` runs every pair of implementations once."""
    settle_s: float = Field(default=0.0, ge=0, allow_inf_nan=False, strict=True)
    """Seconds in which flows settle: throughput ratios (`qbkit.metrics.pair_trials`) leave them out
    at the start of each trial. It changes no run."""

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            first = error.errors()[0]
            place = first["loc"][:3]  # behind a value pydantic names a type
            where = ".".join(str(part) for part in place) or "sweep"
            message = in_words(first)
            if place[:1] == ("sweep",) and len(place) == 3:
                message = "a value is a number, a text, true or false"
            raise SpecError(f"{where}: {message}; a sweep is written {FORM}") from None

    @field_validator("base")
    @classmethod
    def _of_python(cls, base: dict[str, Any]) -> dict[str, Any]:
        return {name: _plain(value) for name, value in base.items()}

    @field_validator("sweep")
    @classmethod
    def _has_values(cls, sweep: dict[str, list[Value]]) -> dict[str, list[Value]]:
        if not sweep:
            raise ValueError("no field is swept; give at least one with its values")
        for field, values in sweep.items():
            if not values:
                raise ValueError(f"{field} has no values; give at least one")
            if len({repr(v) for v in values}) < len(values):
                raise ValueError(f"{field} has a value twice; give each value once")
        for one, other in itertools.combinations(sweep, 2):
            if shared := _set_by(one, sweep[one]) & _set_by(other, sweep[other]):
                raise ValueError(f"{one} and {other} both set {min(shared)}; sweep one of them")
        return sweep

    @model_validator(mode="after")
    def _has_pairs(self) -> Sweep:
        if self.unordered is not None:
            first, second = (self.sweep.get(field) for field in self.unordered)
            if first is None or first != second:
                raise ValueError(
                    f"unordered: {' and '.join(self.unordered)} must both be swept, over the same "
                    "values in the same order"
                )
            if unlike := unlike_sides(self.base, self.sweep):
                raise ValueError(
                    f"unordered: the order matters, as {unlike} sets the two flows apart; leave "
                    "out unordered, so that each pair runs in both orders"
                )
        return self

    @classmethod
    def from_file(cls, path: str | Path) -> Sweep:
        """The sweep in a YAML or JSON file; SpecError names the mistake."""
        fields = read_fields(path, f"a sweep, written {FORM},")
        with of_file(path):
            return cls(**fields)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each field, in order."""
        return tuple(len(values) for values in self.sweep.values())

    def points(self) -> Iterator[Point]:
        """Every experiment of the product, the last field varying fastest."""
        wanted = self.sweep.get(PRESET, [None])
        bases = {preset: json.dumps(self._dumped(preset)) for preset in wanted}
        # Set a flow before its options, whatever their order here: it would overwrite them.
        wide_first = sorted(self.sweep.keys() - {PRESET}, key=lambda field: field.count("."))
        seen: dict[str, Mapping[str, Value]] = {}
        named = cache(_named)  # a text comes again and again
        for index in self._indices():
            chosen = {f: vs[i] for i, (f, vs) in zip(index, self.sweep.items(), strict=True)}
            self._require_effect(chosen)
            spec = json.loads(bases[chosen.get(PRESET)])
            for field in wide_first:
                _put(spec, field, chosen[field], named)
            experiment = Experiment(**spec)
            self._require_longer_than_settling(experiment)
            same = seen.setdefault(experiment.hash, chosen)
            if same is not chosen:
                raise SpecError(f"{_words(same)} and {_words(chosen)} are the same run; drop one")
            yield Point(index, experiment)

    def _dumped(self, preset: Value | None) -> dict[str, Any]:
        """The fields of the base, those of a flow that it leaves out among them."""
        link = self.base.get("bottleneck", {})
        if preset is not None and isinstance(link, Mapping):
            link = {**link, "preset": preset}
        elif preset is not None:
            raise SpecError(f"{PRESET} needs a base whose bottleneck is names with their values")
        if isinstance(link, Mapping) and any(f"bottleneck.{name}" in self.sweep for name in LOSSES):
            link = {"loss_percent": 0.0, **link}  # a loss_direction is possible beside it
        spec = Experiment(**{**self.base, "bottleneck": link}).model_dump(mode="json")
        for flow in spec["flows"]:
            flow.update({name: None for name in LATER_FIELDS if name not in (*flow, "source")})
        return spec

    def _require_effect(self, chosen: Mapping[str, Value]) -> None:
        """Raise SpecError for a swept value that would do nothing: the preset has a schedule in its
        place, or there is no loss that goes its way."""
        link = self.base.get("bottleneck", {})
        if not isinstance(link, Mapping):
            return
        place = "bottleneck."
        swept = {f.removeprefix(place): v for f, v in chosen.items() if f.startswith(place)}
        given = {**link, **swept}
        try:
            require_loss(given.get("loss_direction", "to_receivers"), given)
            if "preset" in given:
                presets.fields_beside(given["preset"], given)
        except ValueError as error:
            raise SpecError(f"{_words(chosen)}: {error}") from None

    def _require_longer_than_settling(self, experiment: Experiment) -> None:
        if self.settle_s >= experiment.duration_s:
            raise SpecError(
                f"settle_s is {self.settle_s:g} s, and a run lasts {experiment.duration_s:g} s; "
                "give less, or run longer"
            )

    def _indices(self) -> Iterator[tuple[int, ...]]:
        every = itertools.product(*(range(n) for n in self.shape))
        if self.unordered is None:
            return every
        first, second = (list(self.sweep).index(field) for field in self.unordered)
        return (index for index in every if index[first] <= index[second])

    def __len__(self) -> int:
        """Number of runs."""
        return sum(1 for _ in self._indices())


def unlike_sides(base: Mapping[str, Any], sweep: Iterable[str]) -> str:
    """What sets the first two flows apart beside their implementations: a field, or nothing ("").

    If there is such a field, x beside y is another experiment than y beside x.
    """
    if base.get("topology", "dumbbell") != "dumbbell":
        return "topology"
    if swept := [field for field in sweep if re.match(r"flows\.[01]\.", field)]:
        return swept[0]
    one, other = [beside_implementation(flow) for flow in base.get("flows", [])[:2]] or [{}, {}]
    names = [*one, *other]
    return next((name for name in names if one.get(name) != other.get(name)), "")


def named_flow(flow: str | Mapping[str, Any]) -> str:
    """How a sweep's ``flows.0`` would name a flow of its base: by its text, without its fields."""
    if not isinstance(flow, Mapping) or "controller" not in flow:
        return str(flow["stack"] if isinstance(flow, Mapping) else flow)
    return f"{flow['stack']}:{flow['controller']}"


def beside_implementation(flow: str | Flow | Mapping[str, Any]) -> dict[str, Any]:
    """The fields and options of a flow of a base that are no defaults, without its names."""
    given = flow.model_dump(mode="json") if isinstance(flow, Flow) else flow
    fields: dict[str, Any] = {"stack": given} if isinstance(given, str) else {**given}
    if "controller" not in fields:
        fields |= parsed(fields["stack"])
    fields |= fields.pop("options", None) or {}
    defaults = {name: field.default for name, field in Flow.model_fields.items()}
    names = {"stack", "controller", "source", "label"}
    return {k: v for k, v in fields.items() if k not in names and v != defaults.get(k)}


def _plain(value: Any) -> Any:
    """A value of the base without NumPy's numbers, of which there is no JSON."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else of_python(value)


def _set_by(field: str, values: list[Value]) -> set[str]:
    """What a field and its values set; no two swept fields may set the same."""
    if field in {f"bottleneck.{name}" for name in BUFFERS}:
        return {"the buffer"}
    if re.fullmatch(r"flows\.\d+", field):
        texts = [parsed(value) for value in values if isinstance(value, str)]
        options = {f"options.{name}" for text in texts for name in text.pop("options", {})}
        return {f"{field}.{name}" for name in {"stack", "controller", *options}.union(*texts)}
    return {field}


def _words(chosen: Mapping[str, Value]) -> str:
    return "{" + ", ".join(f"{field}: {value}" for field, value in chosen.items()) + "}"


def _named(text: str) -> str:
    """The fields that the text of a flow gives, as JSON."""
    return Flow(text).model_dump_json(exclude_unset=True)


def _put(spec: dict[str, Any], field: str, value: Value, named: Callable[[str], str]) -> None:
    """Set a dotted field of a dumped experiment; ``named`` is `_named`, and remembers."""
    *path, last = field.split(".")
    place: Any = spec
    for depth, part in enumerate(path):
        place = place[_key(place, part, ".".join(path[: depth + 1]))]
    key = _key(place, last, field, new=path[-1:] in OPTIONS)
    if path == ["flows"] and isinstance(value, str):
        given = json.loads(named(value))
        options = {**place[key]["options"], **given.pop("options", {})}
        place[key].pop("source", None)  # the new controller brings its own
        place[key].update(given, options=options)
        return
    place[key] = value
    if path[:1] == ["flows"] and last in ("stack", "controller"):
        place.pop("source", None)
    if path == ["bottleneck"] and last in BUFFERS:
        place.update(dict.fromkeys({*BUFFERS} - {last}))


def _key(place: Any, part: str, field: str, *, new: bool = False) -> str | int:
    """The key or index that one part of a field names; SpecError lists the valid ones."""
    if isinstance(place, list):
        indices = {str(i): i for i in range(len(place))}
        if part in indices:
            return indices[part]
        name = field.rpartition(".")[0].rpartition(".")[2]
        raise SpecError(f"there is no field {field}: the base has {len(place)} {name}, from 0 on")
    if isinstance(place, dict) and (new or part in place):
        return part
    known = ", ".join(place) if isinstance(place, dict) else "nothing"
    near = did_you_mean(part, place) if isinstance(place, dict) else ""
    raise SpecError(f"there is no field {field}{near}; the fields there are: {known}")
