"""Execute the project's notebooks with papermill, and convert them to HTML."""

from __future__ import annotations

import base64
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from qbkit.errors import RunFailed, SpecError, StoreError
from qbkit.execution.cluster import run_calls
from qbkit.execution.notebook_checks import PLACES, require_known, require_runnable
from qbkit.files import writing
from qbkit.settings import CHARTS, shipped

ENCRYPTED = {"KernelManager": {"transport_encryption": "auto"}}
"""Jupyter and its kernel encrypt what they say on TCP; otherwise every kernel warns on stderr."""
KERNEL_STARTS = 2
"""Jupyter lets go of free ports before its kernel takes them; another program can be faster."""
START_S = 300
"""How long a kernel may take to start, on a machine as busy as it likes."""
NOT_STARTED = "Kernel died before replying"
FOLDER = shipped("notebooks")
WIDGET = "application/vnd.jupyter.widget-view+json"
PICTURE = re.compile(r"\]\((?P<path>[^):\s]+/(?P<name>[^/)\s]+\.png))\)")
"""A link in a notebook's text to a picture beside it."""
PAGE = "{% extends 'index.html.j2' %}" + "".join(
    f"{{% block html_head_js{part} %}}{{% endblock %}}" for part in ("", "_mathjax", "_mermaidjs")
)
"""nbconvert's page without its scripts from the network; the notebooks need none of them."""


def find(name: str) -> Path:
    """The notebook whose file name begins with ``name``; SpecError lists all notebooks.

    StoreError where none are installed.
    """
    found = sorted(FOLDER.glob("*.ipynb"))
    if not found:
        raise StoreError(
            "the notebooks are not installed here; install them with: pip install qbkit-notebooks",
            refused=True,
        )
    matching = [path for path in found if path.name.startswith(name)]
    if len(matching) != 1:
        raise SpecError(
            f"{name!r} names {len(matching)} notebooks; "
            f"there are {', '.join(path.stem for path in found)}"
        )
    return matching[0]


def execute(
    name: str,
    out: Path,
    parameters: dict[str, Any],
    *,
    stem: str = "",
    pictures: bool = False,
) -> Path:
    """Execute a notebook with parameters into the folder ``out``, and return the result's path.

    The result is named after the notebook, or ``stem``. Its charts are interactive, or
    ``pictures``, which GitHub and nbviewer show. If a cell fails, the result is saved up to
    it, and RunFailed names the cell and the reason; RunFailed also if no Jupyter kernel starts.
    Raises SpecError for a parameter that the notebook does not have, StoreError where the result
    cannot be written.
    """
    import nbformat
    from nbformat.sign import NotebookNotary
    from papermill.exceptions import PapermillExecutionError

    source = find(name)
    require_known(source, parameters)
    target = out / f"{stem or source.stem}.ipynb"
    with writing(target):
        out.mkdir(parents=True, exist_ok=True)
        target.with_suffix(".html").unlink(missing_ok=True)  # `to_html`'s, of other parameters
        try:
            with _charts("png" if pictures else ""):
                _run_cells(source, target, parameters)
        except PapermillExecutionError as error:
            raise RunFailed(
                f"cell {error.cell_index} of {target} failed: {error.ename}: {error.evalue}"
            ) from None
        notebook = nbformat.read(target, as_version=4)
        _lighten(notebook)
        _attach_pictures(notebook, source.parent)
        nbformat.write(notebook, target)
    # JupyterLab shows the charts of trusted notebooks only; this one ran here.
    NotebookNotary().sign(notebook)
    return target


def _run_cells(source: Path, target: Path, parameters: dict[str, Any]) -> None:
    """Execute with papermill. No cell has run where a kernel does not start, so try that again."""
    import papermill
    from traitlets.config import Config

    config, cwd = Config(ENCRYPTED), str(source.parent)
    words: dict[str, Any] = {"cwd": cwd, "kernel_name": "python3", "config": config}
    words["start_timeout"] = START_S
    for _ in range(KERNEL_STARTS):
        try:
            papermill.execute_notebook(str(source), str(target), parameters, **words)
            return
        except RuntimeError as error:
            if NOT_STARTED not in str(error):
                raise
    raise RunFailed(
        f"{source.stem} was not executed: its Jupyter kernel ended before it was ready, "
        f"{KERNEL_STARTS} times; `jupyter console` says why it does not start"
    )


@contextmanager
def _charts(kind: str) -> Iterator[None]:
    """How the kernels that start in the block display charts; empty: as they do by default."""
    before = os.environ.get(CHARTS)
    os.environ[CHARTS] = kind
    try:
        yield
    finally:
        os.environ.pop(CHARTS)
        if before is not None:
            os.environ[CHARTS] = before


def _lighten(notebook: Any) -> None:
    """Keep one copy of Vega for all charts, and no widgets, which do not outlive their kernel."""
    from qbkit.plots.drawing.render import without_bundle

    notebook.metadata.pop("widgets", None)
    first = True
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            html = data.get("text/html", "")
            if (lighter := without_bundle(html)) != html:
                data["text/html"] = html if first else lighter
                first = False
        if "outputs" in cell:
            cell.outputs = [o for o in cell.outputs if not _is_widget(o)]
            for output in cell.outputs:
                output.get("data", {}).pop(WIDGET, None)


def _attach_pictures(notebook: Any, folder: Path) -> None:
    """Put the pictures of the text into the notebook; their links hold in ``folder`` alone."""
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        for found in PICTURE.finditer(cell.source):
            if not (file := folder / found["path"]).exists():
                continue  # a notebook that was copied without its pictures
            encoded = base64.b64encode(file.read_bytes()).decode()
            cell.setdefault("attachments", {})[found["name"]] = {"image/png": encoded}
            cell.source = cell.source.replace(found[0], f"](attachment:{found['name']})")


def _is_widget(output: Any) -> bool:
    """Whether an output is a widget with nothing to show in its place."""
    data = output.get("data", {})
    return WIDGET in data and "text/html" not in data


def execute_grid(
    name: str,
    out: Path,
    grid: Mapping[str, Sequence[Any]],
    *,
    pictures: bool = False,
    scheduler: str | None = None,
    progress: bool = False,
) -> tuple[list[Path], dict[str, str]]:
    """Execute a notebook for each combination of parameter values, on a Dask cluster.

    Returns the paths of the executed notebooks, and the reason of each failure by name. The name
    of a result contains the values of those parameters that have several. ``pictures``: as in
    `execute`. What cannot run is found before the first notebook: raises SpecError, StackNotReady,
    EngineError or StoreError.
    """
    source = find(name)
    require_known(source, grid)
    stems: dict[str, dict[str, Any]] = {}
    varied = [key for key, values in grid.items() if len(values) > 1]
    for values in itertools.product(*grid.values()):
        chosen = dict(zip(grid, values, strict=True))
        words = [re.sub(r"[^\w.]+", "_", str(chosen[key])) for key in varied]
        stem = "-".join([source.stem, *words])
        if stem in stems:
            raise SpecError(f"two of the notebooks would be called {stem}; give each value once")
        stems[stem] = {key: _from_here(key, value) for key, value in chosen.items()}
    require_runnable(source, out, list(stems.values()), scheduler)
    calls = {
        stem: (partial(execute, stem=stem, pictures=pictures), name, out, chosen)
        for stem, chosen in stems.items()
    }
    engine = "host" if "host" in grid.get("engine", ()) else None  # one at a time, in real time
    done = run_calls(calls, engine=engine, scheduler=scheduler, progress=progress, unit="notebook")
    done.warn(str)
    failed = {stem: str(error) for stem, error in done.failed.items()}
    return [out / f"{stem}.ipynb" for stem in stems if stem not in failed], failed


def _from_here(key: str, value: Any) -> Any:
    """A place to write as a whole path, since a notebook runs in the folder of its source."""
    is_path = key in PLACES and isinstance(value, str) and value and "://" not in value
    return str(Path(value).resolve()) if is_path else value


def to_html(notebook: Path) -> Path:
    """Write an executed notebook as HTML beside it; the page needs no network."""
    from jinja2 import DictLoader
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(
        exclude_input_prompt=True,
        extra_loaders=[DictLoader({"qbkit.html.j2": PAGE})],
        template_file="qbkit.html.j2",
    )
    body, _ = exporter.from_filename(str(notebook))
    target = notebook.with_suffix(".html")
    with writing(target):
        target.write_text(body)
    return target
