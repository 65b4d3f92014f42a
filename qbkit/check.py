"""A line of a report on what works: what was checked, whether it is well, and how to fix it."""

from __future__ import annotations

from typing import NamedTuple


class Check(NamedTuple):
    """One line of a report."""

    check: str
    ok: bool
    detail: str
    fix: str = ""

    def to_dict(self) -> dict[str, object]:
        """The fields, ready for JSON; the fix is empty for a check that passed."""
        return {**self._asdict(), "fix": "" if self.ok else self.fix}
