"""The cells of a notebook in this process: a Jupyter kernel of its own takes seconds to start."""

from __future__ import annotations

from contextlib import chdir, redirect_stdout
from io import StringIO
from typing import Any
from unittest.mock import patch

import altair as alt
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from qbkit.execution import notebooks


def shown(name: str, parameters: dict[str, Any]) -> str:
    """What a notebook prints and passes to ``display``; an error of a cell comes through.

    What only stands at the end of a cell is not displayed.
    """
    source = notebooks.find(name)
    given = parameterize_notebook(load_notebook_node(str(source)), parameters)
    code = "\n".join(cell.source for cell in given.cells if cell.cell_type == "code")
    out = StringIO()

    def display(*found: Any) -> None:
        for one in found:
            print(getattr(one, "_repr_mimebundle_", one.__repr__)())

    with (
        chdir(source.parent),
        redirect_stdout(out),
        patch("IPython.display.display", display),
        alt.theme.enable(alt.theme.active),  # what a notebook enables ends with it
        alt.renderers.enable(alt.renderers.active),
    ):
        exec(compile(code, source.name, "exec"), {"display": display})
    return out.getvalue()
