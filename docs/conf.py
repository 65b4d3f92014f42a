"""Sphinx configuration. `make docs` builds the site into build/docs; it needs no network."""

from __future__ import annotations

import inspect
import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from docutils.utils import urischemes
from pydantic import BaseModel
from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
# Stacks of the reader's own are no part of the pages. Set before qbkit lists any.
os.environ["QBKIT_STACKS"] = os.devnull

from repository import repository  # noqa: E402  it is in docs/_ext

project = "qbkit"
author = "the qbkit authors"
release = version = version_of("qbkit")

extensions = [
    "atlas_site",
    "executed_notebooks",
    "chart_gallery",
    "generated_pages",
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_ext", "_generated", "_templates"]
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# The extension executed_notebooks has executed them already.
nb_execution_mode = "off"

# A word in single backquotes links to the API where the API has it, and is plain elsewhere.
default_role = "autolink"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
# Named, as Sphinx does not see the stubs that a new page asks for when it builds on an older build.
autosummary_generate = sorted(str(page) for page in (HERE / "reference").glob("*.rst"))
# The kernel's controllers are no addresses: "tcp:cubic" would be a link.
urischemes.schemes.pop("tcp", None)
copybutton_exclude = ".linenos, .gp"

# It would make a dash of the two in "--seeds", and an opening quotation mark of that in "IMC '22".
smartquotes = False

html_theme = "pydata_sphinx_theme"
html_title = "qbkit"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}
# Pages without others beside them in the navigation: their sidebar would be empty.
html_sidebars = {page: [] for page in ("quickstart", "atlas", "gallery", "releases")}
html_theme_options = {
    "logo": {"text": f"qbkit {release}"},
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "navigation_with_keys": False,
    "show_prev_next": True,
    "icon_links": [
        {"name": "Repository", "url": address, "icon": "fa-brands fa-git-alt"}
        for address in [repository()]
        if address
    ],
    # Not beside the tutorials and wide tables, whose last column would be out of sight.
    "secondary_sidebar_items": {
        **{pages: ["page-toc"] for pages in ("*", "concepts/*", "howto/*", "reference/**")},
        "howto/changing-networks": [],
        "howto/reports": [],
        "reference/stacks": [],
    },
}


def short_signature(
    _app: Sphinx, _kind: str, _name: str, documented: object, *_: object
) -> tuple[str, str] | None:
    """Leave the types out of the signature of a pydantic model: its fields repeat them."""
    if not (isinstance(documented, type) and issubclass(documented, BaseModel)):
        return None
    parameters = inspect.signature(documented).parameters.values()
    untyped = [parameter.replace(annotation=parameter.empty) for parameter in parameters]
    return str(inspect.Signature(untyped)), ""


def setup(app: Sphinx) -> None:
    """Register with Sphinx."""
    app.connect("autodoc-process-signature", short_signature)
