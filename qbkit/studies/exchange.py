"""Is it the receiver? The same sender, with the receiver of another stack.

How often, and how late, packets are acknowledged is the receiver's doing. Before it is named as the
cause of a difference, the study runs again with another receiver: the reference's where the two
stacks speak with each other, else `RECEIVERS`' first, which acknowledges every second packet as the
kernel does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from qbkit import stacks
from qbkit.metrics import Assessment
from qbkit.metrics.verdicts.words import DIFFERS
from qbkit.spec import Flow
from qbkit.stacks.variants.exchanged import exchanges
from qbkit.studies.conformance import Study, study_with

RECEIVERS = ("quic-go", "quinn")
HALF = 0.5
"""Part of the way to the noise floor that conformance must go for a receiver to be the cause."""


@dataclass(frozen=True)
class Outcome:
    """What an exchange keeps of an `Assessment`."""

    outcome: str
    conformance: float
    noise_floor: float

    @classmethod
    def of(cls, found: Assessment) -> Outcome:
        """Its outcome and the two numbers."""
        return cls(found.outcome, found.conformance, found.noise_floor)


@dataclass(frozen=True)
class Exchange:
    """A study before and after the test got another receiver."""

    receiver: str
    """The stack whose receiver it got."""
    before: Outcome
    after: Outcome

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Exchange:
        """What `to_dict` gave; raises KeyError or TypeError for anything else."""
        return cls(found["receiver"], Outcome(**found["before"]), Outcome(**found["after"]))

    def to_dict(self) -> dict[str, Any]:
        """The receiver and both outcomes, ready for JSON."""
        return asdict(self)

    @property
    def is_cause(self) -> bool:
        """Whether most of the difference went with the receiver."""
        way = self.before.noise_floor - self.before.conformance
        return self.after.outcome != DIFFERS or (
            self.after.conformance - self.before.conformance > HALF * way
        )

    def __str__(self) -> str:
        """What came of it, in one sentence."""
        goes = f"{self.before.conformance:.2f} to {self.after.conformance:.2f}"
        if self.after.outcome != DIFFERS:
            return f"With {self.receiver}'s receiver no difference is shown: conformance {goes}."
        return (
            f"With {self.receiver}'s receiver it still differs: conformance {goes} "
            f"(two trials of the reference's: {self.after.noise_floor:.2f})."
        )


def exchange(study: Study, before: Assessment, **how: Any) -> Exchange | None:
    """Run a study that differs again with another receiver; None if the test can have none.

    ``how`` goes to `qbkit.conformance_study`, whose exceptions it raises.
    """
    test, reference = (side[0].qb.experiment for side in (study.tests, study.references))
    if test is None or reference is None:
        return None
    receiver = other_receiver(test.flows[0], reference.flows[0])
    if receiver is None:
        return None
    changed = Flow.model_validate({**test.flows[0].model_dump(), "receiver": receiver})
    after = study_with(study, changed, **how)
    assessed = after.assess(definition=before.definition)
    return Exchange(receiver, Outcome.of(before), Outcome.of(assessed))


def other_receiver(test: Flow, reference: Flow) -> str | None:
    """The stack whose receiver a test can have in place of its own; None if there is none."""
    own = (test.receiver, test.app, test.read_mbps, test.receive_window_kb, test.role, test.resume)
    if any(own) or not exchanges(stacks.get(test.stack)):
        return None
    for name in dict.fromkeys((reference.stack, *RECEIVERS)):
        stack = stacks.get(name)
        if name != test.stack and exchanges(stack) and stack.status().ready:
            return name
    return None
