"""The site builds without a warning, and every link in it leads somewhere."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import nbformat
import pytest
from click.testing import CliRunner
from PIL import Image

import qbkit as qb
from qbkit.atlas.claims.findings import MOST_WORDS
from qbkit.cli.group import group

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import chart_gallery  # noqa: E402  an extension of the documentation
import executed_notebooks  # noqa: E402  an extension of the documentation
import generated_pages  # noqa: E402  an extension of the documentation
import repository  # noqa: E402

PAGES = ("README.md", "CONTRIBUTING.md", "data/README.md", "benchmarks/README.md", "CHANGELOG.md")
SPHINX = ("-m", "sphinx", "-q", "-W", "--keep-going", "-d")
LOADS = {"script": "src", "img": "src", "iframe": "src", "link": "href"}
"""Elements that make a browser load what they name."""
PARTS = ("h3", "details")
"""Elements of a finding's box: its claim and its evidence."""


class Page(HTMLParser):
    """The links of a page, what it loads, and the places in it that a link may name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {name for name in (given.get("id"), given.get("name")) if name}
        if tag == "a" and given.get("href"):
            self.links.add(given["href"] or "")
        if given.get(LOADS.get(tag, "")):
            self.loads.add(given[LOADS[tag]] or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, built as `make docs` builds it without a network, an engine and earlier runs.

    Without an engine the tutorials open published runs; `test_notebooks` runs them on an engine.
    """
    folder = tmp_path_factory.mktemp("site")
    proxy = "http://127.0.0.1:9"  # nobody listens there
    nothing = {name: str(folder / name) for name in ("QBKIT_CACHE", "QBKIT_RUNS")}
    done = subprocess.run(
        [sys.executable, *SPHINX, folder / "trees", "docs", folder / "html"],
        cwd=ROOT,
        env={
            **os.environ,
            "http_proxy": proxy,
            "https_proxy": proxy,
            "PYTHONPATH": str(ROOT),
            **nothing,
        },
        capture_output=True,
        text=True,
    )
    said = [line for line in done.stderr.splitlines() if "WARNING" in line or "ERROR" in line]
    assert done.returncode == 0, "\n".join(said) or done.stderr[-5000:]
    return folder / "html"


@cache
def place(folder: Path, link: str) -> Path:
    """The file that a link names; the pages of a folder have most links in common."""
    return (folder / unquote(link)).resolve()


@pytest.mark.slow
def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path):
    pages = {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    broken = []
    for path, page in pages.items():
        if "cdn.jsdelivr.net" in path.read_text():
            broken.append(f"{path.relative_to(site)} has a chart that comes from elsewhere")
        for link in page.links | page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if parts.scheme not in ("https", "http", "mailto", "data", ""):
                    broken.append(f"{path.relative_to(site)}: {link}")
                if link in page.loads and parts.scheme != "data":
                    broken.append(f"{path.relative_to(site)} loads {link}")
                continue
            target = place(path.parent, parts.path) if parts.path else path
            known = pages[target].anchors if target in pages else set()
            if not target.exists() or (parts.fragment and unquote(parts.fragment) not in known):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken, "\n".join(broken)


@pytest.mark.slow
def test_tutorials_show_charts_and_are_those_of_the_page_of_tutorials(site: Path):
    names = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {path.stem for path in executed_notebooks.tutorials()} == names
    for name in names:
        page = (site / "tutorials" / f"{name}.html").read_text()
        assert 'class="qbkit-chart"' in page, name
        assert page.count("<h1>") == 1, name


@pytest.mark.slow
@pytest.mark.parametrize("source", executed_notebooks.tutorials(), ids=lambda path: path.stem)
def test_a_notebook_begins_with_the_chart_that_it_draws(site: Path, source: Path):
    notebook = nbformat.read(executed_notebooks.TUTORIALS / source.name, as_version=4)
    outputs = [
        output.get("data", {}).get("text/plain", "")
        for cell in notebook.cells
        if "picture" in cell.metadata.get("tags", [])
        for output in cell.outputs
    ]
    drawn = [text for text in outputs if "qbkit chart" in text] or [""]  # images and widgets
    picture = Image.open(site / f"_static/pictures/{source.stem}.png")
    said = picture.text["Description"]  # by the chart when docs/pictures.py drew it
    assert said in drawn, f"run: python docs/pictures.py {source.stem[:2]}"


STAND_IN = "because this machine cannot run the same"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("00", f"a published run, {STAND_IN}"),
        ("01", f"10 published runs, {STAND_IN}"),
        ("02", f"67 published runs, {STAND_IN}"),
        ("03", "cubic: published: "),
        ("04", "published: "),
        ("05", "published events of the default parameters"),
        ("06", "published runs, from data/cases"),
        ("07", "QUIC-DC: published: "),
        ("08", "published verdicts"),
        ("09", "published releases"),
        ("10", "published loads"),
        ("11", "published loads"),
        ("15", f"25 published runs, {STAND_IN}"),
        ("18", f"a published run, {STAND_IN}"),
    ],
)
def test_a_tutorial_opens_published_results_where_no_engine_works(site: Path, name, words):
    (path,) = executed_notebooks.TUTORIALS.glob(f"{name}_*.ipynb")
    executed = path.read_text()
    assert words in executed
    assert "vega" in executed


@pytest.mark.slow
@pytest.mark.parametrize("source", executed_notebooks.tutorials(), ids=lambda path: path.stem)
def test_an_executed_notebook_is_small_and_has_no_widgets(site: Path, source: Path):
    path = executed_notebooks.TUTORIALS / source.name
    notebook = nbformat.read(path, as_version=4)
    assert "widgets" not in notebook.metadata
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    figures = {"image/png"} if source.stem == "12_figures_for_papers" else set()
    assert kinds <= {"text/html", "text/plain", *figures}
    assert path.stat().st_size < 3_000_000 or figures


@pytest.fixture(scope="module")
def boxes(site: Path) -> dict[str, str]:
    """The box of each finding, by its anchor. A claim that the data contradict stops the build, as
    does one without its parts; links show that implementations it is about are in the data."""
    page = (site / "atlas/findings.html").read_text()
    found = re.findall(r'<section class="box" id="(.*?)">(.*?)</section>', page, re.DOTALL)
    assert len(found) == len(dict(found)) >= 50
    return dict(found)


@pytest.mark.slow
def test_each_finding_of_the_published_data_is_short(boxes: dict[str, str]):
    for box in boxes.values():
        claim, evidence = (re.search(f"<{tag}>(.*?)</{tag}>", box, re.DOTALL) for tag in PARTS)
        assert claim and len(unescape(claim[1]).split()) <= MOST_WORDS == 20
        assert evidence and not re.search(r"\bnan\b", evidence[1] + claim[1])


@pytest.mark.slow
def test_the_commands_of_findings_exist(boxes: dict[str, str]):
    texts = [re.findall(r"<pre[^>]*><code>([^<]*)</code></pre>", b)[-1] for b in boxes.values()]
    commands = {tuple(shlex.split(line)) for text in texts for line in unescape(text).splitlines()}
    assert commands
    for program, *words in commands:
        if program == "qbkit":
            assert CliRunner().invoke(group, [words[0], "--help"]).exit_code == 0, words
        else:
            assert program == "python"
            assert (ROOT / words[0]).exists(), words
        files = [word for word in words if word.startswith("data/")]
        assert all((ROOT / file).exists() for file in files), words


@pytest.mark.slow
def test_options_in_docstrings_keep_their_two_dashes(site: Path):
    page = (site / "reference/generated/qbkit.stacks.Stack.html").read_text()
    assert "--listen IP:PORT" in unescape(re.sub("<[^>]*>", "", page))


@pytest.mark.slow
def test_the_gallery_has_a_picture_of_each_chart_that_the_tutorials_draw(site: Path):
    page = Page(site / "gallery.html")
    drawn = {Path(link).stem for link in page.loads if "_chart" in link}
    assert {"envelope_chart", "timeline_chart", "conformance_map_chart"} <= drawn
    assert len(drawn) >= 20


def test_the_gallery_names_functions_of_plots():
    cells = [
        cell.source
        for path in executed_notebooks.tutorials()
        for cell in nbformat.read(path, as_version=4).cells
    ]
    called = {"".join(call) for source in cells for call in chart_gallery.CALL.findall(source)}
    names = {chart_gallery.OTHER_NAMES.get(name, name) for name in called}
    assert {"cwnd_chart", "handshake_chart", "section_chart", "timeline_chart"} <= names
    assert names <= set(qb.plots.__all__)


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@forge.example:some/qbkit.git", "https://forge.example/some/qbkit"),
        ("ssh://git@forge.example/some/qbkit.git", "https://forge.example/some/qbkit"),
        ("https://user:secret@forge.example/some/qbkit.git", "https://forge.example/some/qbkit"),
        ("https://forge.example/some/qbkit", "https://forge.example/some/qbkit"),
        ("/srv/git/qbkit.git", ""),
        ("../qbkit", ""),
        ("", ""),
    ],
)
def test_the_repository_s_link_is_a_page_without_a_password(remote: str, address: str):
    assert repository.web_address(remote) == address


def test_every_public_name_is_in_the_reference():
    listed = set()
    for page in (ROOT / "docs" / "reference").glob("*.rst"):
        module = ""
        for line in page.read_text().splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.split()[-1]
            elif re.fullmatch(r"   \w+", line):
                listed.add(f"{module}.{line.strip()}")
    for package in (qb, qb.metrics, qb.plots, qb.cca):
        names = {name for name in package.__all__ if callable(getattr(package, name))}
        missing = {f"{package.__name__}.{name}" for name in names} - listed
        assert not missing, f"add to docs/reference: {', '.join(sorted(missing))}"


def test_the_page_of_commands_has_the_help_of_each():
    text = "\n".join(generated_pages.helps())
    for name in group.list_commands(click.Context(group)):
        assert f"\n## qbkit {name}\n" in text
    assert "### qbkit stacks build\n" in text
    assert text.count("--loss-model TEXT") == 1  # the network's options, once
    assert text.count(generated_pages.NETWORK) >= 5
    assert text.count("--duration-s FLOAT") >= 6  # whose defaults differ


@pytest.mark.parametrize("page", PAGES)
def test_links_between_files_of_the_project(page: str):
    path = ROOT / page
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        parts = urlsplit(link)
        if not parts.scheme and parts.path:
            assert (path.parent / parts.path).exists(), f"{page}: {link}"
