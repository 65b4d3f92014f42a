"""Flows whose sender is a server: who listens, who starts, and on which side."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import qbkit as qb
from qbkit import stacks
from qbkit.errors import SpecError
from qbkit.stacks import google_quiche
from qbkit.testbed import plan


def flow_of(experiment: qb.Experiment) -> dict:
    drivers = [stacks.get(flow.stack) for flow in experiment.flows]
    return plan.make_plan(experiment, drivers, "virtual", "capture").data["flows"][0]


def test_a_server_listens_on_the_senders_side_and_its_client_starts_the_flow():
    flow = flow_of(qb.Experiment(flows=["google-quiche:reno"], duration_s=7))
    assert (flow["listens"], flow["starts"]) == ("sender", "receiver")
    assert (flow["sender_host"], flow["receiver_host"]) == ("s0", "d0")
    fetch = flow["receiver_argv"]
    assert fetch[fetch.index("--connect") + 1] == f"{flow['sender_ip']}:{flow['port']}"
    assert fetch[fetch.index("--duration-s") + 1] == "7"
    assert fetch[fetch.index("--connection-options") + 1] == "RENO"
    assert flow["sender_argv"][-1].count('"10.1.0.1"') == 1


def test_other_stacks_listen_on_the_receivers_side():
    flow = flow_of(qb.Experiment(flows=["quinn:bbr"], duration_s=7))
    assert (flow["listens"], flow["starts"]) == ("receiver", "sender")
    sender = flow["sender_argv"]
    assert sender[sender.index("--connect") + 1] == f"{flow['receiver_ip']}:{flow['port']}"


def test_google_quiche_asks_for_its_window_by_a_tag_and_lets_no_tag_choose_the_controller():
    def fetch(**options: str | int) -> list[str]:
        return flow_of(qb.Experiment(flows=[qb.Flow("google-quiche", "cubic", options=options)]))[
            "receiver_argv"
        ]

    assert "--connection-options" not in fetch()
    assert fetch(initial_window_packets=20, connection_options="NPRR")[-1] == "NPRRIW20"
    with pytest.raises(SpecError, match="3, 10, 20 and 50"):
        fetch(initial_window_packets=32)
    with pytest.raises(SpecError, match="B2ON chooses a controller"):
        fetch(connection_options="1RTTB2ON")


@pytest.mark.parametrize(
    ("controller", "row"),
    [
        # 32 packets of 1460 bytes in 50.261 ms are 929547.76 bytes a second, rounded down
        ("cubic", "5,46720,50.261,,3"),
        ("bbr", "5,,50.261,7.436,3"),
    ],
)
def test_envoys_statistics_become_telemetry(tmp_path: Path, controller: str, row: str):
    script = runpy.run_path(str(google_quiche.TELEMETRY / "telemetry.py"))
    table = script["Table"](controller)
    table.take(script["SRTT"], 100_000, 1)  # without a bandwidth: QUICHE's guess before any sample
    table.take(script["RETRANSMITTED"], 3, 2)
    table.take(script["SRTT"], 50_261, 4)
    table.take(script["BANDWIDTH"], 929_547, 5)
    table.write(tmp_path / "sender.csv")
    assert (tmp_path / "sender.csv").read_text().splitlines() == [script["HEADER"].strip(), row]
