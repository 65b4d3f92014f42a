"""Progress bars: tqdm's in a terminal, and plain HTML in a notebook.

tqdm's own bar for notebooks is a widget. A notebook that is opened again has no kernel behind its
widgets, and shows an error in their place; HTML stays as it was.
"""

from __future__ import annotations

import io
import sys
from html import escape
from typing import Any

from tqdm import std

LOG_INTERVAL_S = 30.0
"""Least time between two states of a bar that is written to a file or a pipe."""


def bar(**how: Any) -> std.tqdm:
    """A progress bar with tqdm's arguments, to be used in a ``with`` statement.

    As in tqdm, ``disable=None`` shows it in a terminal or a notebook, and not in a log. In a log it
    comes anew seldom, as each time is a line there.
    """
    if in_notebook() and not how.get("disable"):
        return NotebookBar(**how)
    if not sys.stderr.isatty():
        how["mininterval"] = LOG_INTERVAL_S
    return std.tqdm(**how)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return bool(shell) and hasattr(shell, "kernel")


def notice(words: str) -> None:
    """Say a sentence about results: in the output of a notebook's cell, elsewhere on stderr."""
    print(words, file=sys.stdout if in_notebook() else sys.stderr)


class NotebookBar(std.tqdm):
    """A bar in one output of the cell, which ends as a line of text."""

    disable: bool

    def __init__(self, **how: Any) -> None:
        from IPython.display import display

        self._shown = display(_Html(""), display_id=True)
        super().__init__(**{**how, "file": io.StringIO(), "disable": False})

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Bring the output up to date."""
        words = escape(msg or self._words())
        done = f'<progress value="{self.n:g}" max="{self.total or 1:g}"></progress> '
        self._shown.update(_Html((done if self.n < (self.total or 0) else "") + words))

    def close(self) -> None:
        """Leave a line of text in place of the bar."""
        self.display()
        self.disable = True

    def _words(self) -> str:
        form = dict(self.format_dict)
        given = form.pop("bar_format") or "{l_bar}{bar}{r_bar}"
        form["prefix"] = self.desc.removesuffix(": ")  # of set_description, not of the constructor
        # The bar itself is an element of HTML.
        head = "{desc}:" if self.desc else ""
        plain = given.replace("{l_bar}{bar}|", head).replace(
            "{l_bar}{bar}{r_bar}",
            f"{head} {{n_fmt}}/{{total_fmt}} {{unit}} [{{elapsed}}<{{remaining}}]",
        )
        return str(std.tqdm.format_meter(**form, bar_format=plain.lstrip()))


class _Html:
    """HTML as an output; the text beside it is for front ends without HTML."""

    def __init__(self, content: str) -> None:
        self.content = content

    def _repr_html_(self) -> str:
        return self.content

    def __repr__(self) -> str:
        return ""
