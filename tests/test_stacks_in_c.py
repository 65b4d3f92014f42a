"""picoquic, lsquic and openssl: command line, tables, end of their drivers; over the loopback."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from loopback import Bench, succeed

from qbkit import stacks
from qbkit.stacks.base import Stack
from qbkit.stacks.picoquic import _expand
from qbkit.traces.run.telemetry import COLUMNS, STATES

MIB = 1 << 20


@pytest.fixture(params=["picoquic", "lsquic", "openssl"])
def stack(request: pytest.FixtureRequest) -> Stack:
    found = stacks.get(request.param)
    if not found.status().ready:
        pytest.skip(found.status().reason)
    return found


@pytest.mark.slow
def test_each_controller_leaves_both_tables(bench: Bench, stack: Stack):
    for controller in stack.controllers():
        received, samples = bench.one_second(stack, controller)
        assert received > 0
        assert set(samples[0]) == {"time_ns", "state", *COLUMNS} - {"retransmits"}
        assert samples[-1]["cwnd_bytes"]
        assert {row["state"] for row in samples} <= {"", *STATES}


@pytest.mark.slow
@pytest.mark.parametrize("size_bytes", [1, 3 * MIB + 7])
def test_bytes_arrive_exactly(bench: Bench, stack: Stack, size_bytes: int):
    first = stack.controllers()[0]
    assert bench.arrived_bytes(stack, first, size_bytes=size_bytes) == size_bytes


@pytest.mark.slow
def test_sigterm_ends_sender_and_receiver_in_mid_flow(bench: Bench, stack: Stack):
    bench.end_in_mid_flow(stack, stack.controllers()[0])
    assert bench.rows("sender.csv")


def test_what_is_wrong_is_one_sentence(bench: Bench, stack: Stack):
    name, first, switch = stack.name, stack.controllers()[0], next(iter(stack.options))
    for controller, options, sentence in (
        ("vegas", {}, f"{name} has no controller vegas"),
        (first, {"nagle": 1}, f"{name} has no option nagle=1"),
        (first, {switch: 3}, f"the option {switch} cannot be 3; it is true or false"),
    ):
        bench.refuse(stack, controller, sentence, options)


@pytest.mark.parametrize("granularity_us", ["0", "-1", "1.5", "1000001", "fine"])
def test_lsquics_clock_has_a_granularity_of_up_to_a_second(bench: Bench, granularity_us: str):
    stack = stacks.get("lsquic")
    if not stack.status().ready:
        pytest.skip(stack.status().reason)
    sentence = (
        f"clock_granularity_us cannot be {granularity_us}; it is a whole number from 1 to 1000000"
    )
    bench.refuse(stack, "bbr", sentence, {"clock_granularity_us": granularity_us})


def test_picoquics_qlog_is_whole(bench: Bench):
    stack = stacks.get("picoquic")
    if not stack.status().ready:
        pytest.skip(stack.status().reason)
    with bench.receiver(stack) as (address, _):
        sender = bench.send(stack, address, "cubic", size_bytes=MIB, options={"qlog": True})
        succeed(sender)
    (log,) = bench.folder.glob("*.client.qlog")
    (trace,) = json.loads(log.read_text())["traces"]
    assert len(trace["events"]) > 100


def test_words_with_a_choice_name_each_file(tmp_path: Path):
    (tmp_path / "a.c").touch()
    assert _expand(tmp_path, "*.c") == [tmp_path / "a.c"]
    assert _expand(tmp_path, "x/{one,two}.c") == [tmp_path / "x/one.c", tmp_path / "x/two.c"]


def test_versions_name_the_release_and_our_driver():
    assert re.fullmatch(r"1\.1\.53\.0, driver [0-9a-f]{12}", stacks.get("picoquic").version())
    assert re.fullmatch(r"4\.6\.2, driver [0-9a-f]{12}", stacks.get("lsquic").version())
    assert re.fullmatch(r"4\.0\.3, driver [0-9a-f]{12}", stacks.get("openssl").version())
