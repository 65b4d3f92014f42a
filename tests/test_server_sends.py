"""Flows whose sender is a server: who listens, who starts, and on which side."""

from __future__ import annotations

import qbkit as qb
from qbkit import stacks
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
