"""What published points were made with, what runs are made with now, and how the two differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from qbkit import measurement

Inputs = Mapping[str, str]
"""Input → its version."""
MEASUREMENT = "measurement version"
MADE = "made"
"""When it was made, beside the inputs; runs of today have no such input, so it never differs."""
TOOLS = ("ip", "mininet", "python3", "tc")
"""Inputs that are packages of the system."""
DETAILS = ("driver", "preload", "files", "controllers", "client", "server")
"""Words of a version before the fingerprint of one of its parts."""


def published_inputs(facts: Mapping[str, Any], versions: Mapping[str, str]) -> dict[str, str]:
    """The inputs that the metadata of a published file name, with the ``versions`` of stacks."""
    made = _made(facts)
    dated = {MADE: made} if made else {}
    return _named(facts, [versions]) | {MEASUREMENT: _measurement(facts)} | dated


def _measurement(facts: Mapping[str, Any]) -> str:
    """The measurement version; of version 1, which covers different code, also the date."""
    version = measurement.version_of(facts)
    made = _made(facts)
    is_dated = made and version == measurement.PUBLISHED_BEFORE
    return f"{version} (qbkit of {made.partition('T')[0]})" if is_dated else str(version)


def _made(facts: Mapping[str, Any]) -> str:
    return str(facts.get("created") or facts.get("published") or "")


def inputs_of_files(facts: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The inputs that the metadata of several published files name."""
    found: dict[str, str] = {}
    for each in facts:
        found |= published_inputs(each, _texts(each.get("stack_versions")))
    return found


def made_with(attributes: Iterable[Mapping[Any, Any]]) -> dict[str, Any]:
    """What runs with these attributes were made with, as the index beside a table says it."""
    facts: dict[str, Any] = {"measurement_version": measurement.VERSION, "versions": {}}
    for attrs in attributes:
        facts |= {name: attrs[name] for name in ("kernel_version", "kernel_build")}
        facts["tool_versions"] = _texts(attrs["tool_versions"])
        facts["versions"] |= _texts(attrs["stack_versions"])
    return facts


def present_inputs(runs: Sequence[xr.Dataset]) -> dict[str, str]:
    """The inputs of runs of today."""
    found = {MEASUREMENT: str(measurement.VERSION)}
    for run in runs:
        found |= _named(run.attrs, [_texts(run.attrs["stack_versions"])])
    return found


def _named(facts: Mapping[Any, Any], versions: Sequence[Mapping[str, str]]) -> dict[str, str]:
    tools = _texts(facts.get("tool_versions"))
    whole = {"kernel": facts.get("kernel_version"), "kernel build": facts.get("kernel_build")}
    found = {name: str(text) for each in (*versions, tools) for name, text in each.items()}
    return found | {name: str(text) for name, text in whole.items() if text}


def _texts(versions: Any) -> dict[str, str]:
    """Versions by name, of which datasets and files of one run have the JSON."""
    read = json.loads(versions) if isinstance(versions, str) and versions else versions
    return {str(name): str(text) for name, text in (read or {}).items()}


def way_back(inputs: Inputs, source: Path, moved: Iterable[str]) -> str:
    """A sentence on what brings back what a point was made with: commands in a clone, packages.

    ``moved`` are the inputs that differ; the point is published in ``source``.
    """
    made = inputs.get(MADE)
    when = f"--until={made}" if made else f"-- {source}"
    moved = set(moved) - {MEASUREMENT}
    tools = [f"{name} {inputs[name]}" for name in TOOLS if name in moved]
    kernel = ["`make kernel`"] if any(name.startswith("kernel") for name in moved) else []
    names = sorted(name for name in moved - {*TOOLS} if not name.startswith("kernel"))
    stacks = [f"`qbkit stacks build {' '.join(names)}`"] if names else []
    packages = [f"with {', '.join(tools)} of the system"] if tools else []
    steps = [f"`git checkout $(git log -1 --format=%h {when})`", *kernel, *stacks, *packages]
    return f"To make it as then, in a clone: {', '.join(steps)}."


def in_words(then: str, now: str) -> str:
    """How a version differs from that of before: only its parts that do, if it has the same."""
    before, after = (re.split("[,;] ", text) for text in (then, now))
    if len(before) != len(after):
        return f"{now} instead of {then}"
    return ", ".join(
        _part(old, new, _owner(after[:i]))
        for i, (old, new) in enumerate(zip(before, after, strict=True))
        if old != new
    )


def _part(then: str, now: str, owner: str) -> str:
    """One part of a version: ``driver 12ab of quic-go 0.65.0 instead of 34cd``."""
    word, _, rest = then.rpartition(" ")
    if word in DETAILS and now.startswith(f"{word} "):
        return f"{now}{owner} instead of {rest}"
    return f"{now} instead of {then}"


def _owner(parts: Sequence[str]) -> str:
    """The other program to which the next part of a version belongs, if it is not the first."""
    programs = [i for i, part in enumerate(parts) if part.split(" ")[0] not in DETAILS]
    last = programs[-1] if programs else 0
    return f" of {parts[last].removeprefix('receiver ')}" if last else ""
