"""A second connection that resumes the session of the first: ``0rtt kb=100 pause_s=1``."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field

from qbkit.spec.base import TextSpec
from qbkit.spec.words import kind_and_settings

SETTINGS = dict.fromkeys(("0rtt", "1rtt"), ("kb", "pause_s"))
FORMS = "0rtt [kb=100] [pause_s=1], or 1rtt [kb=100] [pause_s=1]"


class Resume(TextSpec):
    """A flow over two connections: the first one ends before the second one, which is the flow's
    transfer, begins."""

    kind: Literal["0rtt", "1rtt"]
    """Whether the server takes data in the first packets of the second connection, or only after
    its handshake."""
    kb: float = Field(default=100.0, ge=1, le=1e7)
    """What the first connection transfers, in kB."""
    pause_s: float = Field(default=1.0, ge=0, le=3600)
    """From the acknowledgement of all that to the start of the second connection."""

    @classmethod
    def of(cls, text: str) -> Self:
        """The second connection that a text describes; raises ValueError for others."""
        return cls(**kind_and_settings(text, SETTINGS, "resume", FORMS))

    def __str__(self) -> str:
        """The text of which `of` makes this."""
        return f"{self.kind} kb={self.kb:.12g} pause_s={self.pause_s:.12g}"

    @property
    def first_bytes(self) -> int:
        """What the first connection transfers."""
        return round(self.kb * 1e3)

    @property
    def words(self) -> str:
        """What a driver reads: kind, bytes of the first connection, pause in ns."""
        return f"{self.kind} {self.first_bytes} {round(self.pause_s * 1e9)}"
