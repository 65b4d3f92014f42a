"""Evaluations: books, harm, answers, reports, and a small one with real guests."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import yaml
from click.testing import CliRunner

import qbkit as qb
from qbkit.cli.group import Commands
from qbkit.cli.run import run_command
from qbkit.errors import MetricError, SpecError, StoreError
from qbkit.markdown import markdown_table
from qbkit.metrics.evaluation.harm import compared, harm
from qbkit.metrics.evaluation.measures import MEASURES, Part
from qbkit.spec.book import Book
from qbkit.studies.evaluation import evaluate as evaluating
from qbkit.studies.evaluation.answers import Evaluation
from qbkit.studies.evaluation.commands import command
from qbkit.studies.evaluation.evaluate import COLUMNS
from qbkit.studies.evaluation.numbers import three_digits
from qbkit.studies.evaluation.shelf import BOOKS, DRAFT, open_book

SCENARIO = {
    "name": "beside CUBIC",
    "flows": ["{}", "tcp:cubic"],
    "network": {"rate_mbps": 20, "rtt_ms": 40, "buffer_bdp": 0.5},
    "measures": ["throughput", "own_loss"],
    "harm": True,
    "duration_s": 12,
    "from_s": 2,
    "quick": True,
}
CRITERION = {"section": "5.2", "title": "Harm", "question": "Harm?", "scenarios": [SCENARIO]}
BOOK = {"name": "small", "title": "Small", "version": 1, "source": "here", "criteria": [CRITERION]}


def book(**scenario) -> dict:
    """The small book with other fields of its scenario."""
    changed = {**CRITERION, "scenarios": [{**SCENARIO, **scenario}]}
    return {**BOOK, "criteria": [changed]}


def values(**by_sender: list[float]) -> pd.DataFrame:
    """The rows of one measure: a list of each sender's values, seed by seed."""
    rows = [
        ("5.2", "beside CUBIC", "", "throughput", True, sender.replace("_", ":"), seed, value, "")
        for sender, each in by_sender.items()
        for seed, value in enumerate(each, 1)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def evaluation(**by_sender: list[float]) -> Evaluation:
    return Evaluation(Book(**BOOK), "a:b", True, 3, values(**by_sender))


def all_fail(every, **_how) -> list[SimpleNamespace]:
    """Outcomes of experiments of which none could be run."""
    return [SimpleNamespace(run=None, reason="failed", experiment=one) for one in every]


@pytest.mark.parametrize(
    ("beside", "alone", "better", "expected"),
    [
        (5, 20, "more", 0.75),  # Ware et al.: (solo - with) / solo
        (20, 20, "more", 0.0),
        (25, 20, "more", -0.25),
        (40, 10, "less", 0.75),  # (with - solo) / with
        (10, 10, "less", 0.0),
        (0, 0, "less", 0.0),
        (0, 10, "less", -1.0),  # nothing is left of it
        (5, 0, "more", -1.0),
    ],
)
def test_harm_is_that_of_the_paper(beside, alone, better, expected):
    assert harm(beside, alone, better) == pytest.approx(expected)


def test_the_bar_is_the_standard_that_does_worst_and_the_interval_is_welchs():
    ours, reno, cubic = [0.8, 0.82, 0.84], [0.5, 0.52, 0.54], [0.4, 0.42, 0.44]
    found = compared(
        ours, {"tcp:reno": reno, "tcp:cubic": cubic}, MEASURES["throughput"], is_harm=True
    )
    assert (found.bar_name, found.bar) == ("tcp:reno", pytest.approx(0.52))
    # Both sides: s = 0.02, n = 3, so the error is 0.02 √(2/3); t(0.975, 4) = 2.776.
    reach = 2.776 * 0.02 * math.sqrt(2 / 3)
    assert (found.low, found.high) == (
        pytest.approx(0.3 - reach, abs=1e-4),
        pytest.approx(0.3 + reach, abs=1e-4),
    )
    assert found.answer == "more"


@pytest.mark.parametrize(
    ("ours", "answer"),
    [
        ([0.9, 0.91, 0.92], "more"),
        ([0.5, 0.51, 0.52], "no more"),
        ([0.2, 0.21, 0.22], "no more"),
        ([0.3, 0.6, 0.9], "undecided"),
        ([0.9], "undecided"),
        ([math.nan, math.nan], "not measured"),
    ],
)
def test_an_answer_needs_an_interval_beyond_the_margin(ours, answer):
    one = evaluation(a_b=ours, tcp_reno=[0.5, 0.51, 0.52], tcp_cubic=[0.4, 0.41, 0.42])
    assert one.answer(one.book.criteria[0]) == answer


def test_a_standard_controller_is_no_worse_than_itself():
    rows = values(tcp_reno=[0.2, 0.5, 0.9], tcp_cubic=[0.1, 0.2, 0.3])
    one = Evaluation(Book(**BOOK), "tcp:reno", True, 3, rows)
    assert one.answer(one.book.criteria[0]) == "no more"


def test_where_more_is_better_less_is_worse():
    found = compared(
        [0.5, 0.51], {"tcp:cubic": [0.9, 0.91]}, MEASURES["utilisation"], is_harm=False
    )
    assert found.answer == "more"
    assert found.low > 0


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.01179, "0.0118"), (59.64, "59.6"), (999.6, "1,000"), (1713.2, "1,710"), (-0.5, "-0.5")],
)
def test_numbers_have_three_digits_and_no_exponent(value: float, text: str):
    assert three_digits(value) == text


def test_the_sentence_names_the_largest_difference():
    one = evaluation(a_b=[0.8, 0.82, 0.84], tcp_reno=[0.5, 0.52, 0.54], tcp_cubic=[0.4, 0.4, 0.4])
    assert one.sentence(one.book.criteria[0]) == (
        "Worse than the standard controllers: harm to throughput, beside CUBIC: 0.82 against 0.52 "
        "of tcp:reno."
    )


QUESTIONS = tuple(name for name in BOOKS if name != DRAFT)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_shipped_book_measures_what_exists(name: str):
    scenarios = [one for criterion in open_book(name).criteria for one in criterion.scenarios]
    assert {name for one in scenarios for name in one.measures} <= set(MEASURES)
    assert any(one.quick for one in scenarios)


def test_the_book_of_rfc_9743_has_all_its_sections():
    lasts = {"5.1": 5, "5.2": 3, "5.3": 2, "6": 4, "7": 11}
    every = [f"{part}.{number + 1}" for part, last in lasts.items() for number in range(last)]
    assert [one.section for one in open_book("rfc9743").criteria] == every


def test_many_flows_have_a_number_before_them():
    sixteen = open_book("shares").criteria[1].scenarios[1]
    assert sixteen.flows == ("{}", *["tcp:cubic"] * 15)


def test_a_command_parses_to_the_experiment_of_its_scenario():
    from qbkit.cli.network import bottleneck

    for criterion in [one for name in QUESTIONS for one in open_book(name).criteria]:
        for scenario in criterion.scenarios:
            for setting in scenario.settings(quick=False):
                words = shlex.split(command(scenario, setting, "quinn:bbr", 3))[2:]
                with run_command.make_context("run", words) as context:
                    params = dict(context.params)
                wanted = scenario.experiment("quinn:bbr", setting, 3)
                assert bottleneck(params) == wanted.bottleneck, words
                flows = params.get("flows") or params.get("flow")
                assert tuple(qb.Flow(text) for text in flows) == wanted.flows
                again = qb.Experiment(flows=["tcp:cubic"], attacks=params["attacks"], duration_s=60)
                assert again.attacks == wanted.attacks


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (book(flows=["tcp:cubic"]), "no sender under test; write {}"),
        (book(flows=["{}", "{}"]), "has nobody to harm"),
        (book(measures=["speed"]), "measures 'speed'"),
        (book(network={"rate_mbps": -1}), "rate_mbps"),
        (book(network={"colour": "red"}), "colour"),
        (book(vary={"buffer_bdp": [1, -1]}), "buffer_bdp"),
        (book(attacks=["5 rest on-path"]), "write SECONDS reset on-path"),
        (book(attacks=["15 reset on-path"]), "15 s"),
        (book(from_s=12), "lasts 12 s and is measured from 12 to 12 s"),
        (book(to_s=13), "measured from 2 to 13 s"),
        (book(measures=["own_loss", "own_loss"]), "own_loss twice in measures"),
        (book(vary={"buffer_bdp": [1, 1]}), "1 twice in vary.buffer_bdp"),
        (book(vary={"loss_percent": [0, 1, 0]}), "0 twice in vary.loss_percent"),
        (book(vary={"ecn": []}), "no value in vary.ecn"),
        (book(vary={"rtt_ms": [10, 20]}), "rtt_ms in network and in vary"),
        (book(flows=["{}"], harm=False), "of the other flows, and 'beside CUBIC' has none"),
        ({**BOOK, "standards": ["tcp:speed"]}, "tcp has no controller 'speed'"),
        ({**BOOK, "others": ["speed:bbr"]}, "there is no stack 'speed'"),
        ({**BOOK, "criteria": [CRITERION, CRITERION]}, "section 5.2 twice"),
        ({**BOOK, "criteria": [{**CRITERION, "scenarios": []}]}, "say in not_measured why"),
    ],
)
def test_a_mistake_in_a_book_is_one_sentence(tmp_path: Path, fields: dict, sentence: str):
    path = tmp_path / "book.yaml"
    path.write_text(yaml.safe_dump(fields))
    with pytest.raises(SpecError) as raised:
        qb.evaluate("tcp:cubic", path)
    assert sentence in str(raised.value)
    assert "Error" not in str(raised.value)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["quinn:speed"], "quinn has no controller 'speed'"),
        (["tcp:cubic", "--book", "rfc9473"], "did you mean rfc9743"),
        (["tcp:cubic", "--book", "bbr-draft"], "tcp:cubic is no BBR"),
        (["tcp:bbr", "--book", "bbr-draft", "--quick"], "which are all quick; leave out quick"),
        (["tcp:cubic?start_s=1"], "sets start_s twice"),
        (["tcp:cubic?role=server"], "cannot be in section 7.6 of rfc9743, 'a receiver"),
        (["tcp:cubic", "--out", "x.pdf"], "choose a name with .html, .md, .json"),
    ],
)
def test_the_command_refuses_before_anything_runs(words: list[str], sentence: str):
    done = CliRunner().invoke(Commands(), ["evaluate", *words])
    assert sentence in (done.output + str(done.exception))


def test_what_a_sender_cannot_run_is_left_out_with_its_reason(tmp_path: Path):
    fields = book(flows=["{}?receiver=optimistic"], measures=["own_loss"], harm=False)
    (tmp_path / "book.yaml").write_text(yaml.safe_dump(fields))
    for sender, why in (("quinn:cubic", "can be crafted"), ("tcp:dctcp", "needs ECN")):
        found = qb.evaluate(sender, tmp_path / "book.yaml", seeds=2)
        (reason,) = found.left_out.values()
        assert why in reason
        assert not found.failed
        assert found.answer(found.book.criteria[0]) == "not measured"
        assert why in found.sentence(found.book.criteria[0])
        again = qb.load_evaluation(qb.save_evaluation(found, tmp_path / "e.json"))
        assert again.left_out == found.left_out
        assert why in qb.save_evaluation(found, tmp_path / "e.html").read_text()


def test_a_quick_evaluation_says_what_it_left_out(tmp_path: Path, monkeypatch):
    varied = {**SCENARIO, "vary": {"buffer_bdp": [1, 0.5, 4], "rtt_ms": [40]}, "network": {}}
    slow = {**SCENARIO, "name": "slow", "quick": False}
    whole = Book(**{**BOOK, "criteria": [{**CRITERION, "scenarios": [varied, slow]}]})
    monkeypatch.setattr(evaluating, "run_missing", lambda *_, **__: {})
    monkeypatch.setattr(evaluating, "run_all", all_fail)
    found = qb.evaluate("tcp:bbr", whole, quick=True)
    why = "not in a quick evaluation"
    left_out = {("5.2", "beside CUBIC with buffer of 0.5, 4 BDP"): why, ("5.2", "slow"): why}
    assert found.left_out == left_out
    assert not qb.evaluate("tcp:bbr", whole).left_out
    for name in ("e.html", "e.md", "e.json"):
        assert "buffer of 0.5, 4 BDP" in qb.save_evaluation(found, tmp_path / name).read_text()
    assert qb.load_evaluation(tmp_path / "e.json").left_out == left_out


def test_a_cell_breaks_no_table_of_a_report():
    rows = [["a | b", "two\nlines"]]
    assert markdown_table(["x", "y"], rows)[1:] == ["|---|---|", "| a \\| b | two lines |"]


def test_the_markdown_has_margins_units_seeds_and_failures(tmp_path: Path):
    rows = values(a_b=[5, 6], tcp_reno=[5, 6], tcp_cubic=[4, 5]).assign(harm=False)
    one = Evaluation(Book(**BOOK), "a:b", True, 2, rows, ("it broke", "it broke"))
    text = qb.save_evaluation(one, tmp_path / "e.md").read_text()
    assert "| worse by (95 %) | margin | answer |" in text
    assert "| throughput (Mbit/s) | 5.5 |" in text
    assert "a:b, quick evaluation, 2 seeds, book small version 1." in text
    assert text.count("it broke") == 1


def test_a_report_says_what_of_a_measured_section_is_not(tmp_path: Path):
    fields = {**BOOK, "criteria": [{**CRITERION, "not_measured": "frames over QUIC"}]}
    rows = values(a_b=[0.5, 0.6], tcp_reno=[0.5, 0.6])
    one = Evaluation(Book(**fields), "a:b", False, 2, rows)
    for name in ("e.html", "e.md"):
        text = qb.save_evaluation(one, tmp_path / name).read_text()
        assert text.count("Not measured: frames over QUIC.") == 1


def test_a_section_whose_runs_failed_says_so():
    nothing = [math.nan, math.nan]
    one = evaluation(a_b=nothing, tcp_reno=[0.5, 0.6], tcp_cubic=[0.4, 0.5])
    assert one.sentence(one.book.criteria[0]) == "Not measured: its runs failed."


def test_what_has_no_number_is_not_shown_to_be_no_worse():
    rows = values(a_b=[0.5, 0.51], tcp_reno=[0.5, 0.51], tcp_cubic=[0.4, 0.41])
    lost = rows.assign(setting="another", value=rows["value"].where(rows["sender"] != "a:b"))
    one = Evaluation(Book(**BOOK), "a:b", True, 2, pd.concat([rows, lost]))
    assert one.worst == "undecided"
    assert one.sentence(one.book.criteria[0]) == "Undecided: in 1 of 2 comparisons its runs failed."


def test_an_evaluation_whose_runs_failed_ends_with_4(tmp_path: Path, monkeypatch):
    (tmp_path / "book.yaml").write_text(yaml.safe_dump(BOOK))
    monkeypatch.setattr(evaluating, "run_missing", lambda *_, **__: {})
    monkeypatch.setattr(evaluating, "run_all", all_fail)
    words = ["evaluate", "tcp:bbr", "--book", str(tmp_path / "book.yaml"), "--json"]
    assert CliRunner().invoke(Commands(), words, standalone_mode=False).return_value == 4


@pytest.mark.parametrize(
    ("measure", "ours", "theirs", "answer"),
    [
        ("late_share", 1.86, 1.05, "more"),  # it takes the link from who came first
        ("late_share", 0.14, 1.05, "more"),
        ("late_share", 1.05, 0.5, "no more"),
        ("utilisation", 0.06, 0.09, "more"),  # behind a policer of a tenth of the link
        ("utilisation", 0.086, 0.09, "no more"),
    ],
)
def test_what_is_worse(measure: str, ours: float, theirs: float, answer: str):
    found = compared([ours] * 2, {"tcp:cubic": [theirs] * 2}, MEASURES[measure], is_harm=False)
    assert found.answer == answer


def test_a_breaker_that_fires_in_every_run_is_worse_than_one_that_never_does():
    found = compared([1, 1, 2], {"tcp:reno": [0, 0, 0]}, MEASURES["breaker"], is_harm=False)
    assert found.answer == "more"
    again = compared([1, 1, 1], {"tcp:reno": [1, 1, 2]}, MEASURES["breaker"], is_harm=False)
    assert again.answer == "no more"


def test_the_margin_of_a_delay_is_a_part_of_a_short_rtt():
    short = book(measures=["queue_p95"], harm=False, network={"rate_mbps": 1000, "rtt_ms": 1})
    rows = values(a_b=[2.2, 2.2], tcp_reno=[0.2, 0.2]).assign(measure="queue_p95", harm=False)
    found = {fields["title"]: Book(**fields) for fields in (short, {**BOOK, "title": "40 ms"})}
    one, other = (Evaluation(each, "a:b", False, 2, rows) for each in found.values())
    assert (one.worst, other.worst) == ("more", "no more")
    assert one.frame()["margin"].item() == pytest.approx(0.2)


def test_a_span_has_its_own_values_also_without_a_delivery_and_within_a_bin():
    bins = {"time": ("time", [0.0, 0.1]), "capacity_mbps": ("time", [8.0, 4.0])}
    packets = {
        f"packet_{name}": ("packet", [each])
        for name, each in {"flow": 0, "time_s": 0.1, "departure_s": 0.15, "size_bytes": 500}.items()
    }
    run = xr.Dataset({**bins, **packets, "label": ("flow", ["a"])}, attrs={"bin_s": 0.1})
    assert math.isnan(MEASURES["jain"].compute(Part(run, [0], 0.0, 0.1)))
    acks = {"ack_flow": ("ack", [0, 0, 0]), "ack_time_s": ("ack", [0.05, 0.151, 0.152])}
    short = Part(run.assign(acks), [0], 0.145, 0.155)
    assert MEASURES["acks"].compute(short) == 2
    assert MEASURES["utilisation"].compute(short) == pytest.approx(500 * 8e-6 / 0.01 / 4)
    assert MEASURES["recovery"].compute(short) == short.span_s


def test_an_object_that_never_came_took_until_the_end_of_the_run():
    flow, release_s, arrived_s = [0, 0, 0, 1], [1.0, 2.0, 29.5, 3.0], [1.1, np.nan, np.nan, 3.1]
    columns = {"flow": flow, "release_s": release_s, "arrived_s": arrived_s}
    run = xr.Dataset(
        {f"object_{name}": ("object", each) for name, each in columns.items()},
        attrs={"duration_s": 30.0},
    )
    part = Part(run, [0], 0, 30)
    assert MEASURES["median"].compute(part) == pytest.approx((100 + 28_000) / 2)
    assert MEASURES["late"].compute(part) == 50
    assert math.isnan(MEASURES["median"].compute(Part(run.drop_vars(list(run)), [0], 0, 30)))


def test_a_section_without_a_number_is_not_drawn():
    one = evaluation(a_b=[0.5, 0.6], tcp_reno=[0.5, 0.6], tcp_cubic=[0.4, 0.5])
    assert one.chart("5.2")
    with pytest.raises(MetricError, match=r"there is no section '9\.9'; choose from 5\.2"):
        one.chart("9.9")
    nothing = replace(one, values=one.values.assign(value=math.nan))
    with pytest.raises(MetricError, match=r"section 5\.2 has no number to draw: its runs failed"):
        nothing.chart("5.2")


def test_no_other_sender_has_the_colour_of_the_tested_one():
    senders = ["a:b", *(f"c:{number}" for number in range(6))]
    rows = pd.DataFrame({"panel": "x", "sender": senders, "value": range(7)})
    panel = qb.plots.section_chart(rows, senders).to_dict()["vconcat"][0]
    colours = panel["layer"][0]["encoding"]["color"]["scale"]["range"]
    assert len(colours) == 7
    assert colours.count(colours[0]) == 1


def test_what_nobody_can_run_is_a_mistake_of_the_book(tmp_path: Path):
    fields = book(flows=["{}", "tcp:dctcp?receiver=withholds"])
    (tmp_path / "book.yaml").write_text(yaml.safe_dump(fields))
    with pytest.raises(SpecError, match="tcp:dctcp needs ECN"):
        qb.evaluate("tcp:bbr", tmp_path / "book.yaml")


@pytest.mark.guest
def test_a_small_evaluation_with_real_flows(tmp_path: Path):
    path = tmp_path / "book.yaml"
    path.write_text(yaml.safe_dump(BOOK))
    found = qb.evaluate("tcp:bbr", path, quick=True, seeds=2)
    by_sender = found.values.groupby(["measure", "sender"])["value"].mean()
    assert 0.7 < by_sender["throughput", "tcp:bbr"] < 1  # half a BDP: BBR takes nearly all
    assert by_sender["throughput", "tcp:cubic"] < 0.65
    assert by_sender["own_loss", "tcp:bbr"] > 3 * by_sender["own_loss", "tcp:reno"]
    assert not found.failed
    for name in ("e.html", "e.md", "e.json"):
        assert qb.save_evaluation(found, tmp_path / name).exists()
    page = (tmp_path / "e.html").read_text()
    assert "qbkit run tcp:bbr tcp:cubic --buffer-bdp 0.5 --rate-mbps 20" in page
    stored = json.loads((tmp_path / "e.json").read_text())
    assert len(stored["values"]) == 3 * 2 * 2
    assert np.isfinite([row[stored["columns"].index("value")] for row in stored["values"]]).all()


def test_a_stored_evaluation_loads_and_another_file_does_not(tmp_path: Path):
    rows = values(a_b=[1.0, math.nan], tcp_reno=[0.5, 0.6], tcp_cubic=[0.4, 0.5])
    whole = Evaluation(open_book("rfc9743"), "a:b", True, 2, rows)
    path = qb.save_evaluation(whole, tmp_path / "e.json")
    again = qb.load_evaluation(path)
    pd.testing.assert_frame_equal(again.values, whole.values)
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(StoreError, match="is no evaluation"):
        qb.load_evaluation(tmp_path / "other.json")


@pytest.mark.parametrize("name", ["my-questions", "rfc9743"])
def test_an_evaluation_along_a_book_of_ones_own_loads_with_it(tmp_path: Path, name: str):
    mine = Book(**{**BOOK, "name": name})
    rows = values(a_b=[1.0, 0.9], tcp_reno=[0.5, 0.6], tcp_cubic=[0.4, 0.5])
    path = qb.save_evaluation(Evaluation(mine, "a:b", True, 2, rows), tmp_path / "e.json")
    assert qb.load_evaluation(path).book == mine
