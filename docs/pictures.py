"""Draws the pictures with which README and the notebooks begin.

python docs/pictures.py [README 00 01 …]

A notebook's picture is the first chart of its cell with the tag ``picture``. It is of the published
runs, whatever this machine could run. The picture's description is the chart's text, by which
`tests/test_docs.py` sees that the chart says something else by now.
"""

from __future__ import annotations

import base64
import io
import os
import sys
import tempfile
from pathlib import Path

import altair as alt
import nbformat
from nbclient import NotebookClient
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import qbkit as qb
from qbkit.execution import notebooks
from qbkit.settings import CHARTS
from qbkit.studies.explorer import Setting, nearest

ROOT = Path(__file__).parents[1]
PICTURES = Path(__file__).parent / "_static" / "pictures"
MOST_PX = 1100


def main(names: list[str]) -> None:
    """The named pictures, or all."""
    PICTURES.mkdir(exist_ok=True)
    os.environ[CHARTS] = "png"
    if not names or "README" in names:
        save(both_are_cubic(), "both-are-cubic")
    with tempfile.TemporaryDirectory() as nothing:
        os.environ |= {"QBKIT_CACHE": nothing, "QBKIT_RUNS": nothing}
        for path in sorted(notebooks.FOLDER.glob("*.ipynb")):
            if not names or path.name[:2] in names:
                is_widget = path.name.startswith("13")
                content, text = (explored(), "") if is_widget else first_picture(path)
                save(content, path.stem, text)


def both_are_cubic() -> bytes:
    """Two CUBICs on one link, means over a second, as PNG."""
    run = qb.load_study(ROOT / "data" / "cases" / "quiche-now").tests[0]
    seconds = run.throughput_mbps.coarsen(time=10).mean().to_dataframe().reset_index()
    seconds["who"] = seconds["stack"].map({"quiche": "quiche's CUBIC", "tcp": "the kernel's CUBIC"})
    base = alt.Chart(seconds).encode(
        x=alt.X("time:Q", title="Time (s)").axis(tickCount=7),
        y=alt.Y("throughput_mbps:Q", title="Throughput (Mbit/s)", stack=True),
        color=alt.Color("who:N", title=None).scale(range=["#D55E00", "#0072B2"]),
        order="who:N",
    )
    return png(base.mark_area(interpolate="monotone").properties(width=820, height=230))


def explored() -> bytes:
    """What the explorer, which is a widget, shows of quinn's BBR, as PNG."""
    cube = qb.load_sweep(ROOT / "data" / "conformance" / "bbr.yaml")
    found = nearest([cube], Setting("quinn:bbr", rtt_ms=50, buffer_bdp=3))
    return png(found.chart())


def png(chart: alt.TopLevelMixin) -> bytes:
    """A chart as PNG."""
    with tempfile.TemporaryDirectory() as folder:
        return qb.plots.save_chart(chart, Path(folder, "chart.png")).read_bytes()


def first_picture(path: Path) -> tuple[bytes, str]:
    """The picture of a notebook, which is executed up to there, as PNG, and the chart's text."""
    notebook = nbformat.read(path, as_version=4)
    tagged = [i for i, c in enumerate(notebook.cells) if "picture" in c.metadata.get("tags", [])]
    notebook.cells = notebook.cells[: tagged[0] + 1]
    NotebookClient(notebook, resources={"metadata": {"path": str(path.parent)}}).execute()
    outputs = [output.get("data", {}) for output in notebook.cells[-1].outputs]
    data = next(data for data in outputs if "image/png" in data)
    text = data["text/plain"] if "qbkit chart" in data["text/plain"] else ""  # some show an image
    return base64.b64decode(data["image/png"]), text


def save(content: bytes, name: str, text: str = "") -> None:
    """A picture that is narrow and small enough for a repository."""
    picture = Image.open(io.BytesIO(content)).convert("RGB")
    picture.thumbnail((MOST_PX, 2 * MOST_PX))
    small = picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    said = PngInfo()
    said.add_itxt("Description", text)
    small.save(PICTURES / f"{name}.png", optimize=True, pnginfo=said)


if __name__ == "__main__":
    main(sys.argv[1:])
