"""What would confirm each cause, and by which names a source calls it.

A cause is a suspect until one experiment has changed it and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from shlex import quote
from typing import NamedTuple

from qbkit import stacks
from qbkit.errors import QbkitError
from qbkit.metrics.parameters import Difference
from qbkit.spec import Bottleneck, Experiment, Flow
from qbkit.studies.source_lines import source_line

LOW_PART = 0.4
"""Of the rate, where it falls."""
SWITCHES = {"paced": True, "bursts": False, "delay": True, "loss": False}
"""How an option spells what slow start does, and by what it ends."""
KINDS = {
    "do": "…",
    "set": "set its … to the reference's, and build it again: the difference must go",
    "fall": "run {both} --buffer-bdp 6 --capacity '{fall}': …",
}
"""Kind of a check in ``confirming.yaml`` → its sentence."""


class Check(NamedTuple):
    """How a cause is put to the test, and where it is looked for."""

    experiment: str
    """What to do, and what it then shows. `confirmation` fills in the commands."""
    identifiers: tuple[str, ...]
    """As `source_line` takes them; none for what no file of a controller sets."""
    option: str = ""
    """The option that sets it, where several stacks have one of that name."""


@cache
def checks() -> dict[str, Check]:
    """Cause → how it is put to the test."""
    import yaml  # late: few commands need it

    text = (files("qbkit.studies") / "confirming.yaml").read_text(encoding="utf-8")
    return {name: _check(**row) for name, row in yaml.safe_load(text).items()}


def _check(names: Sequence[str] = (), option: str = "", **said: str) -> Check:
    ((kind, what),) = said.items()
    return Check(KINDS[kind].replace("…", what), tuple(names), option)


def confirmation(cause: Difference, test: Experiment, reference: Experiment) -> str:
    """What would confirm a cause of a study, in one sentence that begins with "To confirm it".

    ``test`` and ``reference`` are runs of either side. Where the test's stack has an option for the
    cause, the sentence is a command that gives it the reference's value.
    """
    check, link = _check_of(cause), test.bottleneck
    ours, theirs = test.flows[0], reference.flows[0]
    if changed := _changed(cause, ours, check.option):
        command = f"qbkit conformance {quote(changed.text)} --reference {quote(theirs.text)}"
        buffer = f" --buffer-bdp {link.buffer_bdp:g}" if link.buffer_bdp else ""
        rest = " with the other options of this network" if _has_more(link) else ""
        done = f"run {command}{_link(link)}{buffer}{rest}: the difference must go"
    else:
        where = _link(link, check.experiment)
        done = check.experiment.format(
            held=f"qbkit run {quote((ours if cause.test.known else theirs).text)}{where}",
            both=f"qbkit compare {quote(ours.text)} {quote(theirs.text)}{where}",
            longer=f"{4 * link.rtt_ms:g}",
            faster=f"{5 * link.rate_mbps:g}",
            fall=f"0:{link.rate_mbps:g} 20:{LOW_PART * link.rate_mbps:g}",
        )
    return f"To confirm it, {done}."


def likely_place(cause: Difference, test: Flow, reference: Flow) -> str:
    """The line of the test's source where a cause most likely lives.

    "" where no source is at hand, and where both sides run the same code.
    """
    one, other = ((flow.stack, flow.controller, flow.source) for flow in (test, reference))
    return "" if one == other else source_line(test, _check_of(cause).identifiers)


def _check_of(cause: Difference) -> Check:
    """The check of a cause; of a model of the path beside another law, that it probes the RTT."""
    return checks()["probe_rtt" if cause.is_of_two_laws else cause.name]


def _link(link: Bottleneck, experiment: str = "") -> str:
    """Rate and RTT of a link as options of a command; not the defaults, nor what it changes."""
    usual = Bottleneck()
    options = (
        ("--rate-mbps", link.rate_mbps, usual.rate_mbps),
        ("--rtt-ms", link.rtt_ms, usual.rtt_ms),
    )
    chosen = [each for each in options if each[1] != each[2] and each[0] not in experiment]
    return "".join(f" {name} {value:g}" for name, value, _ in chosen)


def _has_more(link: Bottleneck) -> bool:
    """Whether a link has more than its rate, its RTT and a buffer in BDP."""
    named = {"rate_mbps", "rtt_ms", "buffer_bdp"}
    return link.model_dump(exclude=named) != Bottleneck().model_dump(exclude=named)


def _changed(cause: Difference, test: Flow, option: str) -> Flow | None:
    """The test with the reference's value of an option; None if it has no such option."""
    reference = cause.reference
    packets = round(reference.value) if reference.known and not reference.word else None
    value = SWITCHES.get(reference.word) if reference.word else packets
    if not option or value is None:
        return None
    changed = test.model_copy(update={"options": {**test.options, option: value}})
    try:
        stacks.get(test.stack).check(test.controller, changed.options, test.source)
    except QbkitError:
        return None
    return changed
