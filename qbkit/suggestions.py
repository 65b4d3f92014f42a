"""What a misspelt word may mean."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` (did you mean X?)`` for the known word that is nearest; empty if none is near."""
    folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), list(folded), n=1)
    return f" (did you mean {folded[near[0]]}?)" if near else ""
