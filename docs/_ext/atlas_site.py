"""Builds the atlas of the published data into the site, in ``atlas/``."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

from qbkit.atlas import write_atlas

ROOT = Path(__file__).parents[2]

log = logging.getLogger(__name__)


def build(app: Sphinx, failure: Exception | None) -> None:
    """Write the atlas again where the data or the package are newer."""
    first = Path(app.outdir) / "atlas" / "index.html"
    if failure or app.builder.format != "html":
        return
    made_s = first.stat().st_mtime if first.exists() else 0.0
    inputs = [*ROOT.glob("data/**/*"), *ROOT.glob("qbkit/**/*")]
    if any(path.stat().st_mtime > made_s for path in inputs if path.is_file()):
        log.info("writing the atlas")
        write_atlas(ROOT / "data", first.parent)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("build-finished", build)
    return {"parallel_read_safe": True}
