"""The groups of events in a qlog trace, each of which is a connection."""

from __future__ import annotations

from typing import Any

from qbkit.errors import TraceError
from qbkit.traces.logs.jsonfile import JsonFile

MOST_GROUPS = 100


class Groups:
    """The groups that a trace has, of which one may be chosen."""

    def __init__(self, chosen: str | None) -> None:
        self.chosen = chosen
        self.names: list[str] = []
        self.mixed = False

    def is_meant(self, found: Any) -> bool:
        """Whether an event of a group, or of none, is to be read."""
        if found is None:
            return self.chosen is None
        name = str(found)[:200]
        if not self.names or name != self.names[-1]:
            self._turn_to(name)
        return self.chosen is None or name == self.chosen

    def _turn_to(self, name: str) -> None:
        """Note a change of group.

        One connection may change its name, as quinn's does after its first answer, but it does not
        return to an old one: then events of several connections are mixed.
        """
        if name in self.names:
            self.mixed = True
            self.names.remove(name)
        self.names = [*self.names[-MOST_GROUPS:], name]

    def check(self, log: JsonFile) -> None:
        """Raise TraceError for a missing group; warn if several were read as one."""
        listed = ", ".join(repr(name) for name in sorted(self.names)[:10]) or "none"
        if self.chosen is not None and self.chosen not in self.names:
            raise TraceError(f"{log.name} has no events of group {self.chosen!r}; it has {listed}")
        if self.chosen is None and self.mixed:
            log.warn(
                f"has events of {len(self.names)} groups, read as one connection; choose one by "
                f"group=… ({listed})"
            )
