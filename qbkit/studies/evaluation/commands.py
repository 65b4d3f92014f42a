"""The command that makes a run of a book again."""

from __future__ import annotations

import shlex

from qbkit.spec.book import Scenario, Setting


def command(scenario: Scenario, setting: Setting, sender: str, seed: int) -> str:
    """The command that makes a run of a scenario again."""
    experiment = scenario.experiment(sender, setting, seed)
    words = ["qbkit", "run", *(flow.text for flow in experiment.flows)]
    for name, value in {**scenario.network, **setting}.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is False:
            words.append(f"--no-{flag[2:]}")
        elif isinstance(value, dict):
            words += [flag, " ".join(f"{key}={_word(v)}" for key, v in value.items())]
        else:
            words += [flag, _word(value)]
    words += [word for attack in scenario.attacks for word in ("--attack", str(attack))]
    return shlex.join([*words, "--duration-s", _word(scenario.duration_s), "--seed", str(seed)])


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}".removesuffix(".0")
