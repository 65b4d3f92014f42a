"""Arguments of the wrong kind: each public function says so in one sentence."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from synthetic import synthetic_run

import qbkit as qb

PACKAGES = (qb, qb.metrics, qb.plots)
FUNCTIONS = [
    pytest.param(found, id=f"{package.__name__}.{name}")
    for package in PACKAGES
    for name in package.__all__
    if inspect.isfunction(found := getattr(package, name)) and inspect.signature(found).parameters
]
WRONG = (None, 5, "nonsense", "", b"x", [], [None], [5], {}, object(), xr.Dataset(), pd.DataFrame())
VALID: dict[str, Any] = {
    "xr.Dataset": synthetic_run(),
    "str | Path": Path("folder"),
    "str": "cubic",
    "float": 1.0,
    "int": 1,
}
"""Type → a value of it, for the arguments beside the wrong one."""


@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_argument_of_the_wrong_kind_is_one_sentence(
    function: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    needed = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    ]
    for wrong in WRONG:
        for parameter in needed:
            places = [_beside(p, parameter, wrong) for p in needed if p.kind is not p.KEYWORD_ONLY]
            named = {
                p.name: _beside(p, parameter, wrong) for p in needed if p.kind is p.KEYWORD_ONLY
            }
            try:
                function(*places, **named)
            except qb.QbkitError as error:
                assert len(str(error).splitlines()) == 1


def _beside(one: inspect.Parameter, parameter: inspect.Parameter, wrong: object) -> object:
    return wrong if one is parameter else VALID.get(str(one.annotation), wrong)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_option_of_the_wrong_kind_is_one_sentence(function: Callable[..., Any]):
    """The other arguments are wrong as well, so nothing runs, whatever the option is."""
    parameters = inspect.signature(function).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and "VAR" not in p.kind.name]
    for option in [p for p in parameters if p.default is not p.empty]:
        places = [object() for p in needed if p.kind is not p.KEYWORD_ONLY]
        named = {p.name: object() for p in needed if p.kind is p.KEYWORD_ONLY}
        if places or named:
            with pytest.raises(qb.QbkitError):
                function(*places, **named, **{option.name: object()})


@pytest.mark.parametrize("protocols", ["h3", [["h3"]], [3], None])
def test_words_to_choose_from_are_named(protocols: object):
    with pytest.raises(qb.SpecError, match=r"is of the wrong kind; give a list, each h2 or h3$"):
        qb.measure_urls(["https://localhost/"], protocols=protocols)  # type: ignore[arg-type]


def test_one_of_what_a_list_is_for_is_told_so():
    load = qb.WebLoad(server="envoy:cubic", client="curl", protocol="h2", object_bytes=1)
    for one in (qb.Experiment(flows=["tcp:cubic"]), qb.Flow("tcp:cubic")):
        with pytest.raises(qb.SpecError, match=r"^run_all takes a list of experiments"):
            qb.run_all(one)  # type: ignore[arg-type]
    with pytest.raises(qb.SpecError, match=r"^run_web_all takes a list of loads"):
        qb.run_web_all(load)  # type: ignore[arg-type]


def test_the_sentence_names_the_argument_and_what_it_takes():
    with pytest.raises(qb.SpecError, match=r"^summary: ds = 5 .* give a dataset"):
        qb.metrics.summary(5)  # type: ignore[arg-type]
    with pytest.raises(qb.SpecError, match=r"^publish_runs: runs = \[5\] .* each a dataset"):
        qb.publish_runs([5], "folder")  # type: ignore[arg-type]
    with pytest.raises(qb.SpecError, match=r"folder = None .* give the name of a file or folder$"):
        qb.publish_tables({}, None)  # type: ignore[arg-type]
    with pytest.raises(qb.SpecError, match=r"None .* kind; give a number or an array of numbers$"):
        qb.metrics.mathis_window_packets(None)  # type: ignore[arg-type]


def test_a_variable_that_is_not_there_is_named_alone():
    with pytest.raises(qb.SpecError, match="url_differences: loads has no 'url'; give all var"):
        qb.metrics.url_differences(synthetic_run())


def test_numbers_of_numpy_and_lists_of_any_kind_are_taken():
    assert qb.metrics.window_throughput_mbps(np.float32(10), np.int64(20)) > 0
    assert qb.metrics.jain_index((1, 1)) == qb.metrics.jain_index(np.ones(2)) == 1
    names = ["tcp:cubic", "tcp:bbr"]
    families = qb.metrics.by_family(names)
    for given in (
        tuple(names),
        dict.fromkeys(names),
        iter(names),
        pd.Index(names),
        np.array(names),
    ):
        assert qb.metrics.by_family(given) == families


def test_what_a_function_hands_on_by_name_is_checked_one_by_one(tmp_path: Path):
    with pytest.raises(qb.TraceError, match=r"no\.qlog: No such file"):
        qb.read_log(tmp_path / "no.qlog", trace=0)
    with pytest.raises(qb.SpecError, match=r"^read_log: trace = \[\] is of the wrong kind"):
        qb.read_log(tmp_path / "no.qlog", trace=[])


def test_a_public_function_is_one_object_that_pickles():
    assert qb.metrics.summary is qb.metrics.summary
    assert pickle.loads(pickle.dumps(qb.metrics.summary)) is qb.metrics.summary
    assert qb.load_run.__module__ == "qbkit"


def test_a_file_that_is_neither_a_capture_nor_a_log(tmp_path: Path):
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n")
    with pytest.raises(qb.TraceError, match=r"^paper.pdf is neither a capture .* nor a log"):
        qb.read_log(tmp_path / "paper.pdf")


def test_more_seeds_than_anyone_can_wait_for():
    with pytest.raises(qb.SpecError, match=r"^seeds = 1000000: give at most 1000"):
        qb.conformance_study("quinn:cubic", seeds=1_000_000)
