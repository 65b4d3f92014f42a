"""Browsers that die while they upload or load a page (real guests)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr
from test_ends import end_of, silence_receiver

import qbkit as qb
from qbkit import stacks
from qbkit.cli.web.rows import load_row
from qbkit.spec import Experiment
from qbkit.spec.web import WebLoad
from qbkit.stacks.web import base as web

pytestmark = pytest.mark.guest

BROWSER, PAGE = "--headless", "--type=renderer"
"""Words in the command line of Chromium's first process, and of that of its page."""
SLOW = qb.Bottleneck(rate_mbps=0.5, rtt_ms=40, buffer_packets=50)
"""Where the small page takes 8 s."""


def killing(argv: list[str], words: str, at_s: float) -> list[str]:
    """A program, and a kill of what it starts with these words in its command line."""
    pattern = f"[{words[0]}]{words[1:]}"  # which the shell's own command line does not match
    script = f'(sleep {at_s}; pkill -KILL -f -e "{pattern}") >&2 & exec "$@"'
    return ["/bin/sh", "-c", script, "sh", *argv]


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., xr.Dataset]:
    """A run in which a browser is killed 2 s after its upload began, beside a flow of TCP."""

    def run(name: str, words: str) -> xr.Dataset:
        real = stacks.get(name)
        send_argv = real.send_argv
        monkeypatch.setattr(real, "send_argv", lambda to: killing(send_argv(to), words, 2))
        return Experiment(flows=[f"{name}:cubic", "tcp:cubic"], duration_s=4).run(engine="virtual")

    return run


@pytest.mark.parametrize(("name", "words"), [("chromium", BROWSER), ("neqo", "--backgroundtask")])
def test_a_browser_that_dies_ends_its_flow_alone(killed, name: str, words: str):
    run = killed(name, words)
    at_s = float(run.ended_s[0])
    assert 1.9 < at_s < 2.5
    assert end_of(run) == {
        **{"by": "sender-program", "code": 9, "name": "SIGKILL"},
        "reason": f"{stacks.get(name).browser} ended by itself",
    }
    assert float(run.stop_s[0]) == at_s
    sentence = f"{name}:cubic ended at {at_s:.1f} s: the sender's program ended with SIGKILL: "
    assert run.qb.warnings[0].startswith(sentence)
    assert_the_other_goes_on(run)


def assert_the_other_goes_on(run: xr.Dataset) -> None:
    assert math.isnan(float(run.ended_s[1]))
    assert run.packet_time_s.values[run.packet_flow.values == 1].max() > 3.9


def test_a_page_that_crashes_ends_its_upload(killed):
    run = killed("chromium", PAGE)
    assert 1.9 < float(run.ended_s[0]) < 2.5
    assert end_of(run) == {
        **{"by": "sender", "code": 0x10C, "name": "H3_REQUEST_CANCELLED"},
        "reason": "the browser cancelled its upload",
    }
    assert_the_other_goes_on(run)


def test_a_browser_reports_a_server_that_falls_silent(monkeypatch: pytest.MonkeyPatch):
    silence_receiver(monkeypatch, "chromium", after_s=4)
    run = Experiment(flows=["chromium:cubic"], duration_s=30).run(engine="virtual")
    assert 4 < float(run.ended_s[0]) < 20
    found = end_of(run)
    assert (found["by"], found["name"]) == ("sender", "QUIC_TOO_MANY_RTOS")
    assert "blackhole" in found["reason"]


@pytest.mark.parametrize(
    ("client", "words", "said"),
    [
        ("headless-shell", BROWSER, ("SIGKILL", "ended by itself: was killed by signal 9")),
        ("headless-shell", PAGE, ("", "the browser's page crashed")),
        ("firefox", "--marionette", ("SIGKILL", "ended by itself: was killed by signal 9")),
    ],
)
def test_a_load_whose_browser_dies_is_kept(client: str, words: str, said, monkeypatch):
    real = web.client(client)
    argv, at_s = real.page_argv, 4 if client == "headless-shell" else 8
    monkeypatch.setattr(real, "page_argv", lambda **how: killing(argv(**how), words, at_s))
    load = WebLoad(
        bottleneck=SLOW, server="go:cubic", client=client, protocol="h3", page="small", limit_s=60
    )
    run = qb.run_web(load)
    name, reason = said
    found = end_of(run)
    assert (found["by"], found["name"]) == ("receiver-program", name)
    assert reason in str(found["reason"])
    assert at_s - 1 < float(run.ended_s[0]) < at_s + 1
    assert np.isnan(float(run.time_to_last_byte_s))
    assert reason in load_row(load, run)["ended"]
