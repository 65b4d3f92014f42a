"""Running the project's notebooks through papermill, and turning them into HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qbkit.errors import RunFailed, SpecError

FOLDER = Path(__file__).parents[1] / "notebooks"


def find(name: str) -> Path:
    """The notebook whose file name begins so; SpecError lists those there are."""
    found = sorted(FOLDER.glob("*.ipynb"))
    matching = [path for path in found if path.name.startswith(name)]
    if len(matching) != 1:
        raise SpecError(
            f"{name!r} names {len(matching)} notebooks; "
            f"there are {', '.join(path.stem for path in found)}"
        )
    return matching[0]


def execute(name: str, out: Path, parameters: dict[str, Any]) -> Path:
    """Execute a notebook with parameters into the folder ``out``; the path of the result.

    The notebook is saved up to the cell that fails; then RunFailed says which, and why.
    """
    import nbformat
    import papermill
    from nbformat.sign import NotebookNotary
    from papermill.exceptions import PapermillExecutionError

    source = find(name)
    out.mkdir(parents=True, exist_ok=True)
    target = out / source.name
    try:
        papermill.execute_notebook(
            str(source), str(target), parameters, cwd=str(source.parent), kernel_name="python3"
        )
    except PapermillExecutionError as error:
        raise RunFailed(
            f"cell {error.cell_index} of {target} failed: {error.ename}: {error.evalue}"
        ) from None
    # JupyterLab shows charts of notebooks that it trusts; this one was run here.
    NotebookNotary().sign(nbformat.read(target, as_version=4))
    return target


def to_html(notebook: Path) -> Path:
    """Write the HTML of an executed notebook beside it; it needs no network to be read."""
    from nbconvert import HTMLExporter

    body, _ = HTMLExporter(exclude_input_prompt=True).from_filename(str(notebook))
    target = notebook.with_suffix(".html")
    target.write_text(body)
    return target
