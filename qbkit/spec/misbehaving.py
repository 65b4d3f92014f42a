"""Receivers that are not the sender's own, and hosts that forge packets.

Both are texts: ``quic-go``, ``optimistic ahead_packets=10`` and ``withholds every_ms=200`` are
receivers, ``5 reset on-path`` and ``5 too-big 600 off-path guesses=1000`` attacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from qbkit.spec.base import TextSpec
from qbkit.spec.words import kind_and_settings, number, settings

RECEIVERS = {"optimistic": "ahead_packets", "withholds": "every_ms"}
"""Kind of receiver → its setting."""
RECEIVER_FORMS = (
    "the name of a QUIC stack, optimistic [ahead_packets=10], or withholds [every_ms=200]"
)
ATTACK_FORMS = (
    "SECONDS reset on-path, SECONDS reset off-path [guesses=1], or SECONDS too-big MTU on-path (or "
    "off-path), and flow=0 to strike that flow alone"
)


class Receiver(TextSpec):
    """A receiver that is not the sender's own: another stack's, or a TCP one that misbehaves."""

    kind: Literal["stack", "optimistic", "withholds"]
    """``stack``: another QUIC stack's. Two are crafted, for TCP: ``optimistic`` acknowledges data
    before they arrive, and lost ones as if they had; ``withholds`` acknowledges what has arrived
    (with SACK), but seldom."""
    stack: str = ""
    """Name of the other stack."""
    ahead_packets: int = Field(default=10, ge=0, le=1000)
    """How far an optimistic receiver is ahead of what has arrived."""
    every_ms: float = Field(default=200.0, ge=0.1, le=10_000.0)
    """How often a withholding receiver acknowledges."""

    @classmethod
    def of(cls, text: str) -> Self:
        """The receiver that a text describes; raises ValueError for others."""
        words = text.split()
        if len(words) == 1 and words[0] not in RECEIVERS:
            return cls(kind="stack", stack=words[0])
        names = {kind: (name,) for kind, name in RECEIVERS.items()}
        return cls(**kind_and_settings(text, names, "receiver", RECEIVER_FORMS))

    def __str__(self) -> str:
        """The text of which `of` makes this receiver."""
        if self.stack:
            return self.stack
        name = RECEIVERS[self.kind]
        return f"{self.kind} {name}={getattr(self, name):.12g}"


class Attack(TextSpec):
    """Packets that a third host forges as if a flow's receiver had sent them to its sender."""

    at_s: float = Field(ge=0.0, le=86_400.0)
    """When, in s of the experiment."""
    kind: Literal["reset", "too-big"]
    """``reset``: a RST for TCP, a stateless reset for QUIC. ``too-big``: ICMP's "fragmentation
    needed", which says that the path carries `mtu_bytes`."""
    where: Literal["on-path", "off-path"]
    """Who is ``on-path`` reads the flow's packets; who is ``off-path`` knows addresses and ports,
    and guesses sequence numbers."""
    mtu_bytes: int | None = Field(default=None, ge=68, lt=1500)
    """``too-big``: the MTU that it claims."""
    guesses: int = Field(default=1, ge=1, le=1_000_000)
    """``off-path``: packets that it sends, with sequence numbers at equal distances."""
    flow: int | None = Field(default=None, ge=0)
    """Index of the only flow that it strikes; by default all."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.mtu_bytes is None) != (self.kind == "reset"):
            what = "needs the MTU that it claims" if self.kind == "too-big" else "claims no MTU"
            raise ValueError(f"{self.kind} {what}; write {ATTACK_FORMS}")
        if self.where == "on-path" and self.guesses > 1:
            raise ValueError("an attacker on-path reads sequence numbers; leave out guesses")
        return self

    @classmethod
    def of(cls, text: str) -> Self:
        """The attack that a text describes; raises ValueError for others."""
        words = text.split()
        named = [word for word in words if "=" in word]
        plain = [word for word in words if "=" not in word]
        sizes = {"too-big": 4, "reset": 3}
        kind = plain[1] if len(plain) > 1 else ""
        if kind not in sizes:
            raise ValueError(f"{text!r} is no attack; write {ATTACK_FORMS}")
        if len(plain) != sizes[kind] or plain[-1] not in ("on-path", "off-path"):
            raise ValueError(f"{text!r} is no {kind}; write {ATTACK_FORMS}")
        found = settings(named, {"guesses", "flow"}, kind, ATTACK_FORMS)
        if kind == "too-big":
            found["mtu_bytes"] = number(plain[2], text)
        return cls(at_s=number(plain[0], text), kind=kind, where=plain[-1], **found)  # type: ignore[arg-type]

    def __str__(self) -> str:
        """The text of which `of` makes this attack."""
        mtu = [] if self.mtu_bytes is None else [str(self.mtu_bytes)]
        more = [f"guesses={self.guesses}"] if self.guesses > 1 else []
        more += [] if self.flow is None else [f"flow={self.flow}"]
        return " ".join([f"{self.at_s:.12g}", self.kind, *mtu, self.where, *more])


def require_possible(
    attacks: Sequence[Attack], starts_s: Sequence[float], duration_s: float, *, one_way: bool
) -> None:
    """Raise ValueError for attacks that an experiment cannot have.

    ``starts_s`` are the starts of its flows; ``one_way`` says whether it is a dumbbell in which all
    data go forward.
    """
    for attack in attacks:
        if attack.at_s >= duration_s:
            raise ValueError(
                f"the attack at {attack.at_s:g} s comes after the experiment's end at "
                f"{duration_s:g} s; lengthen duration_s or leave it out"
            )
        if attack.flow is not None and attack.flow >= len(starts_s):
            raise ValueError(
                f"the attack at {attack.at_s:g} s strikes flow {attack.flow}; "
                f"flows are 0 to {len(starts_s) - 1}"
            )
        struck = starts_s if attack.flow is None else [starts_s[attack.flow]]
        if attack.at_s < min(struck):
            raise ValueError(
                f"the attack at {attack.at_s:g} s finds no flow: the first starts at "
                f"{min(struck):g} s"
            )
    if attacks and not one_way:
        raise ValueError("attacks need the dumbbell, with forward flows alone")


def as_list(value: Any) -> Any:
    """A lone text as a list; anything else as it is."""
    return [value] if isinstance(value, str) else value
