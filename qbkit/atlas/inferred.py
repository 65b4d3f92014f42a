"""Published parameters of implementations, and the lone flows that they were inferred from."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from qbkit.metrics.parameters import PARAMETERS, Estimate, Parameters
from qbkit.metrics.parameters.rules import RULES
from qbkit.spec import Experiment

LINK = ("rate_mbps", "rtt_ms", "buffer_bdp")


class Inferred(NamedTuple):
    """What the packets of an implementation's lone flows say."""

    parameters: Parameters
    version: str
    """Version of the stack."""
    experiment: Experiment
    """The lone flow with the first seed."""
    seeds: int
    """Number of flows; their seeds count from 1."""


def read_inferred(folder: Path) -> dict[str, Inferred]:
    """The parameters of each implementation that ``parameters.csv`` names; none without a table.

    With its behaviour, if ``behaviour/behaviour.csv`` has it.
    """
    table = folder / "parameters.csv"
    if not table.exists():
        return {}
    behaviour = _behaviour(folder / "behaviour/behaviour.csv")
    rows = pd.read_csv(table, dtype=str).groupby("implementation")
    return {str(name): _inferred(mine, behaviour.get(str(name), [])) for name, mine in rows}


def _behaviour(table: Path) -> dict[str, list[Estimate]]:
    if not table.exists():
        return {}
    rows = pd.read_csv(table, dtype=str).rename(columns={"behaviour": "parameter"})
    return {str(name): estimates_of(mine) for name, mine in rows.groupby("implementation")}


def parameter_rows(shown: Collection[Parameters]) -> list[tuple[str, list[str], str]]:
    """Meaning, value of each side and unit of every parameter and behaviour that any side shows."""
    rows = []
    rules = {name: (rule.unit, rule.meaning) for name, rule in RULES.items()}
    for name, (unit, meaning) in {**PARAMETERS, **rules}.items():
        estimates = [each.get(name, Estimate(name, math.nan)) for each in shown]
        if any(each.known for each in estimates):
            rows.append((meaning, [str(each) for each in estimates], unit if unit != "1" else ""))
    return rows


def estimates_of(rows: pd.DataFrame) -> list[Estimate]:
    """The estimate of each row (``parameter``, ``value``, ``low``, ``high``), all of them text."""
    numbers = rows[["value", "low", "high"]].apply(pd.to_numeric, errors="coerce")
    words = rows["value"].where(numbers["value"].isna()).fillna("")
    columns = zip(rows["parameter"], *(numbers[n] for n in numbers), words, strict=True)
    return [Estimate(name, value, low, high, word=word) for name, value, low, high, word in columns]


def _inferred(rows: pd.DataFrame, behaviour: list[Estimate]) -> Inferred:
    flow: Mapping[str, str] = rows.iloc[0].to_dict()
    name = flow["implementation"]
    document = {
        "bottleneck": {field: flow[field] for field in LINK},
        "flows": [name],
        "duration_s": flow["duration_s"],
    }
    experiment = Experiment.model_validate(document)
    parameters = Parameters(name, [*estimates_of(rows), *behaviour])
    return Inferred(parameters, str(flow["version"]), experiment, int(flow["seeds"]))
