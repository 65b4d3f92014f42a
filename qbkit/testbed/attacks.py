"""What a plan says about attacks: the program of the attacker, and when it strikes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from qbkit.spec import Experiment
from qbkit.spec.misbehaving import Attack
from qbkit.stacks.variants.crafted import Crafted

TABLE = "attacks.csv"
"""The attacker's table in the folder of a run."""


def of(experiment: Experiment, hosts: list[dict[str, Any]], folder: str) -> dict[str, Any]:
    """The part of the plan that only experiments with attacks have.

    ``hosts`` are the flows with the addresses of their hosts, ``folder`` the guest's folder of the
    run. The agent adds to the command where the attacker sees the flows.
    """
    attacks = in_order(experiment.attacks)
    if not attacks:
        return {}
    program, flows = Crafted(), [{"index": i, **pair} for i, pair in enumerate(hosts)]
    words = json.dumps([_words(attack, flows) for attack in attacks])
    return {
        "attacks": {
            "at_s": [attack.at_s for attack in attacks],
            "argv": program.argv("crafted.attacker", words, f"{folder}/{TABLE}"),
            "env": program.env(),
        }
    }


def in_order(attacks: Sequence[Attack]) -> list[Attack]:
    """Attacks in the order in which they strike."""
    return sorted(attacks, key=lambda attack: attack.at_s)


def _words(attack: Attack, flows: list[dict[str, Any]]) -> dict[str, Any]:
    """An attack as the attacker reads it."""
    return {
        "kind": attack.kind,
        "on_path": attack.where == "on-path",
        "mtu": attack.mtu_bytes,
        "guesses": attack.guesses,
        "flows": flows if attack.flow is None else [flows[attack.flow]],
    }
