"""What the pages of both kinds of book look like."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from qbkit.studies.report import STYLE

CSS = (
    STYLE
    + """
.answer { display: inline-block; padding: 0 0.5em; border-radius: 0.6em; font-size: 0.85em;
  color: white; background: #7b8794; white-space: nowrap; }
@media (max-width: 40rem) { .answer { white-space: normal; } }
.answer.more { background: #b4432c; } .answer.no { background: #2c7a4b; }
summary { cursor: pointer; color: var(--quiet); }
code { font-size: 0.85em; overflow-wrap: anywhere; }
"""
)


def badge(kind: str, words: str) -> str:
    """An answer as HTML: red for the kind ``more``, green for ``no``, grey for others."""
    return f'<span class="answer {kind}">{escape(words)}</span>'


def failures(reasons: Iterable[str]) -> str:
    """The runs that failed as HTML, each reason once; empty without any."""
    items = "".join(f"<li>{escape(reason)}</li>" for reason in dict.fromkeys(reasons))
    return f"<p>Runs that failed:</p><ul>{items}</ul>" if items else ""
