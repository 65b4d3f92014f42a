"""What would confirm a cause is a command that runs; its line of the source is where it lives."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from synthetic import synthetic_run

import qbkit as qb
from qbkit import stacks
from qbkit.cli.group import group
from qbkit.cli.network import bottleneck
from qbkit.metrics.parameters import Difference, Estimate
from qbkit.metrics.parameters.effects import EFFECTS, SYMPTOMS
from qbkit.metrics.parameters.relations import EVIDENCE, RECEIVERS
from qbkit.metrics.parameters.rules import RULES
from qbkit.spec import Flow
from qbkit.studies.confirming import checks, confirmation, likely_place
from qbkit.studies.moments import LOSS, moment_of
from qbkit.studies.source_lines import source_line

CASES = Path(__file__).parents[1] / "data/cases"
LINK = qb.Bottleneck(rate_mbps=10, rtt_ms=30, buffer_bdp=3)


def said(
    name: str,
    flow: str,
    other: str = "tcp:reno",
    value: float = 2.0,
    word: str = "",
    link: qb.Bottleneck = LINK,
) -> str:
    """What would confirm a cause, whose value is that of the reference."""
    estimate = Estimate(name, math.nan if word else value, word=word)
    cause = Difference(name, estimate, estimate, 0.1, math.nan, math.nan, 0.1)
    runs = (qb.Experiment(flows=[each], bottleneck=link) for each in (flow, other))
    return confirmation(cause, *runs)


def parsed(sentence: str) -> click.Context:
    """The command of a sentence, read as the command line reads it."""
    command = sentence.removeprefix("To confirm it, run ").partition(": ")[0]
    assert command.startswith("qbkit ")
    _, name, *words = shlex.split(command)
    options = [word for word in words if word.startswith("--")]
    assert len({*options}) == len(options)
    found = group.get_command(click.Context(group), name)
    assert found
    return found.make_context(name, words)


def test_every_cause_has_its_check():
    assert {*checks()} == {*EFFECTS, *RULES} - {*SYMPTOMS, *EVIDENCE}


@pytest.mark.parametrize(
    "name", [n for n, c in checks().items() if c.experiment.startswith("run ")]
)
def test_every_experiment_is_a_command(name):
    sentence = said(name, "quinn:newreno?ack_every_packets=10")
    context = parsed(sentence)
    link = bottleneck(dict(context.params))
    assert 10 <= link.rate_mbps <= 50 and 30 <= link.rtt_ms <= 120
    assert sentence.endswith(".") and "{" not in sentence


def test_an_option_gives_the_test_the_value_of_the_reference():
    sentence = said("packets_per_ack", "quinn:newreno?ack_every_packets=10")
    assert sentence == (
        "To confirm it, run qbkit conformance 'quinn:newreno?ack_every_packets=2' --reference "
        "tcp:reno --rate-mbps 10 --rtt-ms 30 --buffer-bdp 3: the difference must go."
    )
    assert parsed(sentence).params["test"] == "quinn:newreno?ack_every_packets=2"
    codel = LINK.model_copy(update={"qdisc": "codel"})
    assert said("packets_per_ack", "quinn:newreno?ack_every_packets=10", link=codel).endswith(
        " --buffer-bdp 3 with the other options of this network: the difference must go."
    )
    assert "'tquic:bbr?pacing=true'" in said("pacing", "tquic:bbr", word="paced")
    assert "hystart=false" in said("slow_start_exit", "quiche:cubic", word="loss")
    # Without the option, it is said in words; also where the reference's value is no setting.
    assert "switch its pacer" in said("pacing", "quinn:cubic", word="paced")
    assert "leaves slow start by delay" in said("slow_start_exit", "quiche:cubic", word="other")


@pytest.mark.parametrize("held", [0, 1])
def test_what_holds_a_window_is_asked_of_the_side_that_is_held(held):
    name, flows = "window_cap_packets", ("quinn:cubic", "tcp:cubic")
    sides = [Estimate(name, 40.0 if n == held else math.nan) for n in range(2)]
    runs = (qb.Experiment(flows=[flow], bottleneck=LINK) for flow in flows)
    sentence = confirmation(Difference(name, *sides, *[0.0] * 4), *runs)
    assert f" qbkit run {flows[held]} --rtt-ms 30 --rate-mbps 50: " in sentence


@pytest.mark.parametrize(
    ("words", "check"),
    [
        (("probing", "cubic"), "only one of them must empty the queue again and again"),
        (("linear", "cubic"), "a cubic window must be back after as many seconds"),
    ],
)
def test_laws_are_told_apart_by_what_they_do(words, check):
    sides = [Estimate("growth", math.nan, word=word) for word in words]
    runs = (qb.Experiment(flows=[flow], bottleneck=LINK) for flow in ("tcp:bbr", "tcp:cubic"))
    assert check in confirmation(Difference("growth", *sides, *[0.0] * 4), *runs)


@pytest.mark.parametrize("name", RECEIVERS)
def test_what_a_receiver_does_is_said_of_the_receiver(name):
    assert "property of the receiver" in said(name, "nginx-1.26:reno")
    clause = Difference(*[name, *[Estimate(name, 2.0)] * 2, *[0.0] * 4]).clause
    assert clause.startswith("its receiver ")


def test_the_lines_below_a_verdict():
    exchanged = qb.load_explanation(CASES / "ack-10")
    assert exchanged.next_lines == [
        "With quic-go's receiver it still differs: conformance 0.34 to 0.72 "
        "(two trials of the reference's: 0.87)."
    ]
    found = replace(exchanged, exchange=None)
    assert found.next_lines[0].startswith(
        "To test the first, run qbkit conformance 'quinn:newreno?ack_every_packets=2'"
    )
    assert found.to_dict()["next"] == found.next_lines
    assert "To test the first" in found._repr_html_()
    known = qb.load_explanation(CASES / "quiche-now")
    assert known.next_lines[0] == (
        "From its packets alone: most likely because it reverts 76 % of its window reductions."
    )
    assert (
        qb.load_explanation(CASES / "bbr-120-explained")
        .next_lines[0]
        .startswith("To confirm it, set its pacing rate to the reference's")
    )
    same = replace(found.assessment, outcome="conforms")
    assert replace(found, assessment=same).next_lines == []


def test_what_both_sides_share_is_no_place_of_a_cause(monkeypatch):
    monkeypatch.setattr("qbkit.studies.confirming.source_line", lambda *_, **__: "a.rs:7")
    found = qb.load_explanation(CASES / "google-cubic")
    assert found.next_lines[-1] == "Most likely in the source: a.rs:7."
    open_cause = replace(qb.load_explanation(CASES / "ack-10"), exchange=None)
    assert open_cause.cause_line.startswith("The cause is open")
    assert "a.rs" not in " ".join(open_cause.next_lines)
    spec = found.study.tests[0].attrs["spec"]
    same = replace(
        found.study, references=[run.assign_attrs(spec=spec) for run in found.study.references]
    )
    assert "a.rs" not in " ".join(replace(found, study=same).next_lines)
    cause, reno = found.suspects[0], Flow("quic-go:reno")
    assert likely_place(cause, Flow("quic-go:cubic"), reno) == "a.rs:7"  # another controller
    assert likely_place(cause, Flow("quic-go:reno?start_s=1"), reno) == ""
    known = qb.load_explanation(CASES / "quiche-now")  # its fault has a place of its own
    assert "Most likely in the source" not in " ".join(known.next_lines)


FILES = {
    "src/congestion/cubic.rs": (
        "// beta, as in RFC 9438\nuse crate::BETA;\nfn on_loss() { w = w * BETA; }\n"
        "const BETA: f64 = 0.7;\n#[cfg(test)]\nmod tests { const BETA: f64 = 0.1; }\n"
    ),
    "src/congestion/bbr3.rs": "const BETA: f64 = 0.5;\n",
    "src/congestion/bbr.rs": "let x = betamax;\n",
    "src/ack.py": "# max_ack_delay\nmax_ack_delay = 25\n",
    "tests/cubic.rs": "const BETA: f64 = 0.2;\n",
}


@pytest.fixture
def at_hand(tmp_path, monkeypatch):
    for name, text in FILES.items():
        path = tmp_path / "mine-1.0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    mine = SimpleNamespace(sources_at_hand=lambda: [tmp_path / "mine-1.0"])
    monkeypatch.setattr(stacks, "get", lambda _: mine)


def test_the_line_that_sets_the_value_in_the_file_of_the_controller(at_hand):
    place = source_line(Flow("mine:cubic"), ["beta"])
    assert place == "mine-1.0/src/congestion/cubic.rs:4"
    # Its own file comes before that of another controller of its family, whatever that sets.
    assert source_line(Flow("mine:bbr"), ["beta"]).endswith("/bbr.rs:1")
    assert source_line(Flow("mine:bbr2"), ["beta"]).endswith("/bbr3.rs:1")
    assert source_line(Flow("mine:reno"), ["beta"]) == ""


def test_no_source_at_hand_is_no_line():
    assert source_line(Flow("tcp:cubic"), ["beta"]) == ""
    assert source_line(Flow("nobody:cubic"), ["beta"]) == ""


def line_of(name: str, flow: str) -> tuple[str, int]:
    cause = Difference(*[name, *[Estimate(name, 2.0)] * 2, *[0.0] * 4])
    place = likely_place(cause, Flow(flow), Flow("tcp:reno"))
    file, _, line = place.rpartition(":")
    return file, int(line or 0)


def test_a_controller_of_ours_is_found():
    file, line = line_of("cubic_c", "qbkit:cubic")
    assert file == "cca/builtin/cubic.py"
    text = (Path(qb.__file__).parent / file).read_text().splitlines()[line - 1]
    assert text.startswith("C = 0.4")


@pytest.mark.parametrize(
    ("flow", "name", "file", "lines"),
    [
        ("tquic:bbr3", "cruise_part", "bbr3.rs", (149, 149)),
        ("msquic:bbr", "pacing", "bbr.c", (600, 650)),
        ("quiche:cubic", "reverted_reductions_percent", "cubic.rs", (69, 69)),
        ("quinn:bbr", "bandwidth_filter", "bw_estimation.rs", (16, 65)),
        ("picoquic:bbr1", "left_in_flight_bdp", "bbr1.c", (700, 716)),
        ("lsquic:bbr", "ack_room", "lsquic_bbr.c", (540, 560)),
        ("aioquic:cubic", "increase_packets_per_rtt", "cubic.py", (35, 35)),
    ],
)
def test_known_faults_are_found_again(flow, name, file, lines):
    # The lines of data/faults.csv, or the constant or the function that they use.
    if not stacks.get(flow.partition(":")[0]).sources_at_hand():
        pytest.skip(f"the source of {flow} is not at hand")
    where, line = line_of(name, flow)
    assert where.rpartition("/")[2] == file
    assert lines[0] <= line <= lines[1]


def test_evidence_is_drawn_at_the_start_or_around_a_loss():
    run = synthetic_run(flows=("tcp:cubic",), duration_s=12)
    found = replace(qb.load_explanation(CASES / "quiche-now"), alone=(run, run))
    seen = qb.metrics.parameters.observe(run)
    assert moment_of("pacing", run, seen).span_s == (0.0, 4.0)
    moment = moment_of("decrease_factor", run, seen)
    assert moment.span_s == (max(moment.at_s - 2, 0), moment.at_s + 10)
    title = found.evidence().to_dict()["title"]
    assert "it reverts 76 % of its window reductions" in str(title).lower()
    with pytest.raises(qb.MetricError, match="no evidence"):
        qb.load_explanation(CASES / "quiche-now").evidence()


@pytest.mark.guest
def test_evidence_of_a_window_is_at_its_first_loss_after_slow_start():
    link = qb.Bottleneck(rate_mbps=10, rtt_ms=30, buffer_bdp=1)
    run = qb.Experiment(flows=["tcp:reno"], bottleneck=link, duration_s=12).run()
    moment = moment_of("decrease_factor", run, qb.metrics.parameters.observe(run))
    assert moment.words == LOSS
    lost_s = run.packet_time_s.values[~(run.packet_departure_s.values > 0)]
    # A loss is detected a round trip after its packet reached the queue, which was full.
    assert min(abs(moment.at_s - lost_s)) < 0.1
