"""The atlas: every link leads somewhere, every chart draws itself, and nothing else is loaded."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
from collections import defaultdict
from html import unescape
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import pandas as pd
import pytest
from test_docs import Page
from test_plots_browser import browser

import qbkit as qb
from qbkit.atlas import again, write_atlas
from qbkit.atlas.again import sample_size
from qbkit.atlas.answers import published_answers
from qbkit.atlas.differences import Difference
from qbkit.atlas.inferred import read_inferred
from qbkit.atlas.pages import shared_words
from qbkit.atlas.published import ConformanceSweep
from qbkit.atlas.shares import EQUAL, Shares
from qbkit.atlas.site import page_of
from qbkit.atlas.standing import cause_of, standing_of
from qbkit.cli.reproduce import MOST_POINTS, reproduce_command, wanted_fields
from qbkit.errors import StoreError
from qbkit.metrics.parameters import PARAMETERS
from qbkit.plots.drawing.captions import signed
from qbkit.store.faults import read_faults
from qbkit.store.published import write_cube
from qbkit.studies.reproduction import Point, published_points

__all__ = ["browser"]  # a fixture, used by its name

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data"
ALONE = ("tcp:cubic", "aioquic:cubic", "ngtcp2:bbr")
MEANING = {name: meaning for name, (_, meaning) in PARAMETERS.items()}
DRAWN = "[...document.querySelectorAll('.qbkit-chart')].every(e => e.vegaView)"
RELEASES = {
    "conformance": "release,conformance,conformance_low,conformance_high,noise_floor,"
    "mean_throughput_difference_mbps\naioquic@1.2.0,0.515,0.4,0.6,0.8,-1.25\n",
    "dates": "release,version,date,controller,source\naioquic@1.2.0,1.2.0,2024-07-06,cubic,PyPI\n",
    "parameters": "parameter,value,low,high,release\ndecrease_factor,0.52,0.5,0.6,aioquic@1.2.0\n"
    "pacing,paced,,,aioquic@1.2.0\n",
}
INFERRED = """implementation,version,rate_mbps,rtt_ms,buffer_bdp,duration_s,seeds,parameter,value,low,high
aioquic:cubic,1.7.2,20,50,1,60,3,pacing,bursts,,
aioquic:cubic,1.7.2,20,50,1,60,3,decrease_factor,0.85,0.8412,0.86
aioquic:cubic,1.7.2,20,50,1,60,3,cubic_c,0.3,,
aioquic:cubic,1.7.2,20,50,1,60,3,probe_up_gain,,,
tcp:cubic,Linux 7.2.13,12.5,40,0.5,30,2,cubic_c,,,
tcp:cubic,Linux 7.2.13,12.5,40,0.5,30,2,decrease_factor,0.698,0.69,0.7
tcp:cubic,Linux 7.2.13,12.5,40,0.5,30,2,pacing,paced,,
tcp:cubic,Linux 7.2.13,12.5,40,0.5,30,2,probe_up_gain,,,
"""  # noqa: E501
FAULTS = """implementation,version,source,url,fault,evidence
aioquic:cubic,1.7.2,"cubic.py:1, 7",https://example.org/a#1 https://example.org/a#7,It counts twice.,One run shows <it>.
"""  # noqa: E501
FINDINGS = """
# About loss

## {{ "aioquic's CUBIC is `first`" | claim(rows("faults.csv").size > 0) }}.
about: aioquic:cubic
picture: {{ bars("share", {"aioquic:cubic": 0.75, "the kernel's": 0.25}, mark=0.5) }}
command: qbkit reproduce data/gallery --flow aioquic:cubic

It is {{ 0.75 | to(2) }} & more.
"""
CLOCKS = """flow,rate_mbps,buffer_bdp,virtual_runs,virtual_share,virtual_share_sd,physical_runs,\
physical_share,physical_share_sd,conformance,noise_floor,p_value
aioquic:cubic,10,1,10,0.66,0.04,9,0.6,0.06,0.68,0.77,0.0215
"""
EXTERNAL = """stack,version,source,build
msquic,tag 7,example.org/msquic,gcc 12
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """A part of the published data: a sweep of each kind, a case with its causes, two lone runs."""
    folder = tmp_path_factory.mktemp("published") / "data"
    folder.mkdir()
    for name in ("controllers/cubic", "interactions/shallow"):
        for ending in (".yaml", ".json", ".nc"):
            copy = folder / f"{name}{ending}"
            copy.parent.mkdir(exist_ok=True)
            copy.symlink_to(DATA / f"{name}{ending}")
    (folder / "l4s").symlink_to(DATA / "l4s")  # no implementations as they are: not in the atlas
    (folder / "elsewhere").symlink_to(folder / "controllers")  # the same sweep once more
    (folder / "cases").mkdir()
    for case in ("quiche-now", "ack-10"):  # a stack as it is, and one with an option set
        (folder / f"cases/{case}").symlink_to(DATA / f"cases/{case}")
    runs = {name: qb.load_run(DATA / f"gallery/{name.replace(':', '-')}.nc") for name in ALONE}
    qb.publish_runs(runs, folder / "gallery")
    for published in (
        "evaluations/tcp-cubic.json",
        "evaluations/tcp-bbr.json",
        "bbr_draft/cases.csv",
        "shares/shares.csv",
    ):
        (folder / published).parent.mkdir(exist_ok=True)
        (folder / published).symlink_to(DATA / published)
    (folder / "releases").mkdir()
    for name, text in RELEASES.items():
        (folder / f"releases/{name}.csv").write_text(text)
    (folder / "faults.csv").write_text(FAULTS)
    (folder / "findings.md.jinja").write_text(FINDINGS)
    (folder / "external.csv").write_text(EXTERNAL)
    (folder / "checks").mkdir()
    (folder / "checks/physical-time.csv").write_text(CLOCKS)
    (folder / "parameters.csv").write_text(INFERRED)
    return folder


@pytest.fixture(scope="module")
def site(data, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("atlas")
    (out / "implementations").mkdir()
    (out / "implementations/gone-cubic.html").write_text("of older data")
    (out / "kept.txt").write_text("not ours")
    assert write_atlas(data, out) == out / "index.html"
    return out


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path):
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) == 6 + 28  # the pairs' 25, aioquic, the controller in Python and the case
    broken = []
    for path, page in pages.items():
        for link in page.links | page.loads:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages[target].anchors if target in pages else set()
            if parts.scheme and link not in page.loads:
                assert link.startswith("https://example.org/a#")  # the lines of a fault
                continue
            elsewhere = parts.scheme or parts.netloc or not target.exists()
            if elsewhere or (parts.fragment and parts.fragment not in known):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken
    linked = {(site / link).resolve() for link in pages[site / "index.html"].links}
    assert linked >= pages.keys() - {site / "index.html"}


def test_pages_of_older_data_go_and_other_files_stay(site: Path):
    assert not (site / "implementations/gone-cubic.html").exists()
    assert (site / "kept.txt").exists()


def test_a_page_has_the_numbers_of_the_data_and_how_to_make_them_again(site: Path):
    cube = qb.load_sweep(DATA / "controllers/cubic.yaml")
    row = qb.metrics.conformance_map(cube, "tcp:cubic").sel({"flows.0": "qbkit:cubic"})
    page = (site / "implementations/qbkit-cubic.html").read_text()
    for number in row.conformance.values.ravel().tolist():
        assert f"<td>{number:.2f} <span" in page
    sweeps = 2
    assert page.count('class="qbkit-chart"') == sweeps
    mean, floor = float(row.conformance.mean()), float(row.noise_floor.mean())
    assert f"Conformance {mean:.2f}; two trials of the kernel's have {floor:.2f}." in unescape(page)
    worst = float(row.conformance[(row.conformance - row.noise_floor).argmin(...)])
    takes = row.mean_throughput_difference_mbps
    spread = f"by {signed(float(takes.min()), 1)} to {signed(float(takes.max()), 1)} Mbit/s"
    assert f"Means over {takes.size} settings at 10 Mbit/s, 60 s; the throughput differs" in page
    assert spread in page
    verdict, _, repeat = page.partition("Repeat one of these numbers")
    assert "badge" in verdict
    assert repeat.index(f"conformance {worst:.2f} at") < repeat.index("qbkit reproduce")
    (publish,) = set(re.findall(r"import qbkit as qb; (.*?)&#34;", page))
    assert unescape(publish).endswith(".yaml', 'FOLDER')")  # it runs as it is copied


@pytest.mark.parametrize(
    ("hours", "runs", "size"), [(0.0, 4, 4), (0.05, 40, 20), (4.44, 460, 3), (100.0, 10, 1)]
)
def test_the_sample_of_a_sweep_takes_two_processor_minutes(hours: float, runs: int, size: int):
    assert sample_size({"processor_hours": hours, "runs": runs}) == size


def test_the_first_page_has_a_verdict_for_each_implementation(site: Path):
    page = unescape((site / "index.html").read_text())
    rows = re.findall(r'<tr data-name="(.*?)".*?</tr>', page, re.DOTALL)
    assert len(rows) == len(set(rows)) == 28
    for name in rows:
        row = page.partition(f'<tr data-name="{name}"')[2].partition("</tr>")[0]
        assert f'<a href="implementations/{name.replace(":", "-").replace("_", "-")}' in row
        assert 'class="badge' in row
    kernel = page.partition('<tr data-name="tcp:cubic"')[2].partition("</tr>")[0]
    assert "the kernel's own" in kernel
    assert "small-map" in kernel  # its noise floor


def test_the_first_page_takes_what_the_map_says(site: Path):
    found = qb.metrics.conformance_map(qb.load_sweep(DATA / "controllers/cubic.yaml"), "tcp:cubic")
    page = (site / "index.html").read_text()
    for name, row in found.groupby("flows.0"):
        (taken,) = re.findall(rf'data-name="{name}"[^>]* data-more="([^"]*)"', page)
        assert float(taken) == pytest.approx(float(row.mean_throughput_difference_mbps.mean()))


def test_what_rounds_to_zero_has_no_sign():
    said = [signed(value, decimals=1) for value in (-0.04, 0.0, 0.04, -0.06, 2.3)]
    assert said == ["0.0", "0.0", "0.0", "−0.1", "+2.3"]
    assert signed(-0.004) == "0.00"
    assert signed(float("nan")) == "–"


def test_a_map_begins_with_the_noise_floor_and_goes_on_by_conformance(site: Path):
    section = (site / "conformance.html").read_text().partition("<section")[2]
    rows = section.partition("<tbody>")[2].partition("</tbody>")[0].split("<tr")[1:]
    means = [float(re.findall(r"<td>([\d.]+)</td>", row)[0]) for row in rows]
    assert 'class="floor"' in rows[0]
    assert "tcp:cubic" in rows[0]
    assert means[1:] == sorted(means[1:], reverse=True)
    assert all("<a href=" in row for row in rows)


def test_a_finding_is_a_box_and_on_the_page_of_its_implementation(site: Path):
    for name in ("findings", "implementations/aioquic-cubic"):
        page = (site / f"{name}.html").read_text()
        assert "aioquic's CUBIC is <code>first</code>." in unescape(page)
        assert "It is 0.75 &amp; more." in page
        assert "left:0.0%;width:100.0%" in page
    assert "About loss" in (site / "findings.html").read_text()
    assert "CUBIC is" not in (site / "implementations/tcp-cubic.html").read_text()


def test_sweeps_against_one_controller_have_different_headings():
    folders = ("conformance", "conformance_100_mbps_10_ms", "conformance_100_mbps_50_ms")
    cubes = [qb.load_sweep(DATA / folder / "bbr.yaml") for folder in folders]
    headings = [shared_words(ConformanceSweep("bbr", cube, {})) for cube in cubes]
    assert headings == ["20 Mbit/s, 60 s", "100 Mbit/s, 10 ms, 60 s", "100 Mbit/s, 50 ms, 60 s"]


def test_answers_along_standards_are_a_table_and_on_the_page_of_the_sender(site: Path):
    text = (site / "answers.html").read_text()
    harm = next(line for line in text.splitlines() if "Harm to standard controllers" in line)
    assert harm.index("no worse") < harm.index(">worse<")  # tcp:cubic, then tcp:bbr
    assert "2.17 against 7.4 Mbit/s of tcp:cubic" in harm
    assert "Not measured: Short and long flows (5.2.3), Differences from principles (5.3.1)" in text
    case = next(line for line in text.splitlines() if "Leave STARTUP on a plateau" in line)
    senders = {row["sender"] for row in csv.DictReader((DATA / "bbr_draft/cases.csv").open())}
    assert case.count("<td") == len(senders) + 1
    page = (site / "implementations/tcp-cubic.html").read_text()
    assert re.search(r'answers.html#rfc9743">[^<]*</a>: no worse in \d+, open in \d+ of 18', page)
    assert "bbr-draft" not in page


def test_a_sender_s_answers_add_up():
    """Those that are not measured, or not seen, are said too."""
    evaluations, draft = published_answers(DATA)
    assert draft.of("quinn:bbr").endswith("not applicable in 2")
    for table in (evaluations, draft):
        for sender in table.senders:
            counts = re.findall(r" in (\d+)", table.of(sender))
            assert sum(map(int, counts)) == len(table.rows), sender
    assert evaluations.of("tcp:bbr").endswith("not measured in 1")


def test_the_page_says_which_evaluations_are_whole():
    lead = published_answers(DATA)[0].lead
    assert "Quick evaluations of 3 seeds; whole ones of 5: tcp:dctcp." in lead


def test_shares_over_buffer_and_flows_are_drawn_beside_their_models(site: Path):
    page = (site / "answers.html").read_text()
    assert page.count('class="qbkit-chart"') == 2
    assert "charts.js" in page
    shares = Shares(pd.read_csv(DATA / "shares/shares.csv"))
    for chart, predicted in (
        (shares.by_buffer(), {"tcp:bbr", "tcp:cubic"}),
        (shares.by_flows(), {"tcp:bbr", "tcp:cubic", EQUAL}),
    ):
        lines = pd.read_csv(StringIO(chart.layer[0].data.to_dict()["values"]))
        assert set(lines[lines["kind"] == "model"]["label"]) == predicted


def test_a_known_fault_is_the_verdict_and_its_lines_are_links(site: Path):
    page = (site / "implementations/aioquic-cubic.html").read_text()
    lines = (
        '<a href="https://example.org/a#1"><code>cubic.py:1</code></a>, '
        '<a href="https://example.org/a#7"><code>7</code></a>'
    )
    assert f"It counts twice. {lines} in 1.7.2." in page
    assert "One run shows &lt;it&gt;." in page
    assert page.index("has a known fault") < page.index("A known fault: It counts twice")
    index = (site / "index.html").read_text()
    assert index.count('class="badge fault"') == 1
    assert lines in (site / "causes.html").read_text()


def test_without_a_goodput_a_lone_flow_has_its_throughput(site: Path):
    page = (site / "implementations/ngtcp2-bbr.html").read_text()
    assert "Alone on a link: throughput 18.6 Mbit/s" in page
    page = (site / "implementations/aioquic-cubic.html").read_text()
    assert "Alone on a link: goodput 18.7 Mbit/s" in page


@pytest.mark.parametrize(
    ("name", "mbps", "is_open"),
    [("s2n-quic:bbr", -4.3, True), ("tquic:bbr", -1.8, True), ("quic-go:reno", 1.4, False)],
)
def test_the_cause_is_open_where_it_makes_little_of_the_difference(name, mbps, is_open):
    published = SimpleNamespace(
        faults={},
        parameters=read_inferred(DATA),
        difference=lambda _: Difference(mbps, 0.1, 9.7, 0.1, 0.8),
    )
    cause = cause_of(published, name)
    assert cause
    assert cause.is_open is is_open


@pytest.mark.parametrize(
    ("name", "mbps", "kind", "text"),
    [
        ("noq:bbr3", -5.0, "less", "it cruises at 0.58 of what its probes have in flight"),
        ("quinn:cubic", 0.0, "fault", "Its receiver closes the connection"),
        ("quinn:bbr", 2.3, "fault", "Its bandwidth is the largest rate"),
    ],
)
def test_a_fault_that_ends_flows_is_no_reason_for_what_others_take(name, mbps, kind, text):
    published = SimpleNamespace(
        faults=read_faults(DATA / "faults.csv"),
        parameters=read_inferred(DATA),
        difference=lambda _: Difference(mbps, 0.1, 9.7, 0.1, 0.8),
    )
    assert standing_of(published, name).kind == kind
    assert cause_of(published, name).text.startswith(text)


def test_causes_are_those_of_stacks_as_they_are(site: Path):
    page = (site / "causes.html").read_text()
    assert "quiche:cubic at 20 Mbit/s" in page
    assert all("ack_every_packets" not in path.read_text() for path in site.rglob("*.html"))


def test_a_stack_that_was_built_elsewhere_says_from_what(site: Path):
    said = "An external stack: example.org/msquic, tag 7, built outside of qbkit (gcc 12)."
    assert said in (site / "implementations/msquic-cubic.html").read_text()
    assert "external stack" not in (site / "implementations/tcp-cubic.html").read_text()


def test_causes_and_releases_are_on_the_page_of_the_implementation(site: Path):
    study = qb.load_explanation(DATA / "cases/quiche-now")
    assert str(study.suspects[0]) in (site / "implementations/quiche-cubic.html").read_text()
    page = (site / "implementations/aioquic-cubic.html").read_text()
    for words in ("1.2.0", "2024-07-06", "0.52 <span", "[0.40, 0.60]", "−1.2", "0.52 [0.5, 0.6]"):
        assert words in page
    assert "<td>paced</td>" in page


def section_in(site: Path, name: str, section: str = "parameters") -> str:
    """A section of an implementation's page; "" without one."""
    page = unescape((site / f"implementations/{name}.html").read_text())
    start = f'<details class="section" id="{section}">'
    return page.partition(start)[2].partition("\n</details>\n")[0]


def cells_of(section: str) -> list[list[str]]:
    """The cells of a section's table, by row."""
    rows = section.split("<tr>")[1:]
    return [re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_a_second_method_is_beside_virtual_time_with_its_command(site: Path):
    section = section_in(site, "aioquic-cubic", "clocks")
    sides = ['0.66 <span class="quiet">± 0.04</span>', '0.60 <span class="quiet">± 0.06</span>']
    assert cells_of(section)[1:] == [
        ["10 Mbit/s, 1 BDP", *sides, "0.68", "0.77", "0.0215", "10 + 9"],
    ]
    assert "<code>python benchmarks/physical_time.py aioquic:cubic</code>" in section
    assert section_in(site, "qbkit-cubic", "clocks") == ""


def test_inferred_parameters_are_beside_those_of_the_kernel(site: Path):
    section = section_in(site, "aioquic-cubic")
    assert cells_of(section) == [
        ["Parameter", "aioquic:cubic", "tcp:cubic", "Unit"],
        [MEANING["pacing"], "bursts", "paced", ""],
        [MEANING["decrease_factor"], "0.85 [0.841, 0.86]", "0.698 [0.69, 0.7]", ""],
        [MEANING["cubic_c"], "0.3", "not seen", "packets/s³"],
    ]
    mine = "aioquic:cubic (1.7.2) at 20 Mbit/s, 50 ms, 1 BDP, 60 s, 3 seeds of each"
    kernel = "tcp:cubic (Linux 7.2.13) at 12.5 Mbit/s, 40 ms, 0.5 BDP, 30 s, 2 seeds of each"
    assert f"{mine}; {kernel}." in section


def test_the_kernel_has_one_column_and_others_without_rows_have_no_parameters(site: Path):
    assert '<th scope="col">tcp:cubic</th><th scope="col">Unit</th>' in (
        section_in(site, "tcp-cubic")
    )
    assert len(section_in(site, "tcp-cubic").split("<tr>")) == 1 + 1 + 2
    assert section_in(site, "qbkit-cubic") == ""
    assert "None are published" in (site / "implementations/qbkit-cubic.html").read_text()


def test_every_command_of_the_atlas_chooses_published_points(site: Path):
    pages = [unescape(path.read_text()) for path in site.rglob("*.html")]
    commands = {line for page in pages for line in re.findall(r"qbkit reproduce [^\n<]+", page)}
    assert len(commands) > 500
    require_points(commands)


def test_every_command_of_the_published_findings_chooses_points():
    text = (DATA / "findings.md.jinja").read_text()
    (start,) = re.findall(r'{% set map = "(qbkit reproduce [^"]+)" %}', text)
    lines = re.findall(r"^command: (qbkit .+)$", text.replace("{{ map }}", start), re.M)
    commands = {line for line in lines if line.startswith("qbkit reproduce") and "{" not in line}
    assert len(commands) > 30
    require_points(commands)


def require_points(commands: set[str]) -> None:
    """Each command chooses published points: a sample of them, or few enough to run all."""
    published: dict[str, dict[str, list[Point]]] = {}  # path → flow, or "" for all → points
    for command in sorted(commands):
        chosen = parse(shlex.split(command)[2:])
        path, wanted = chosen["path"], chosen["wanted"]
        if path not in published:
            real = path.replace("elsewhere", "controllers")
            published[path] = defaultdict(list)
            for point in published_points(DATA.parent / real):
                for flow in ("", *point.known("flow")):
                    published[path][flow].append(point)
        count = sum(point.has(wanted) for point in published[path][wanted.get("flow", "")])
        assert count > 0, command
        assert count <= MOST_POINTS or chosen["sample"], command


def parse(words: list[str]) -> dict:
    """The path, the wanted fields and the sample of a command."""
    context = reproduce_command.make_context("reproduce", words)
    return {
        "path": str(context.params["path"]),
        "wanted": wanted_fields(context.params),
        "sample": context.params["sample"],
    }


@pytest.mark.browser
def test_every_chart_draws_itself_and_nothing_is_requested(browser, site: Path):
    names = [
        *("index", "conformance", "interactions", "causes", "findings"),
        *("implementations/qbkit-cubic", "implementations/aioquic-cubic"),
        *("implementations/quiche-cubic", "answers"),
    ]
    for name, width_px in [*((name, 1440) for name in names), (names[5], 390), (names[2], 390)]:
        page = browser.new_page(viewport={"width": width_px, "height": 900}, color_scheme="dark")
        page.set_default_timeout(120_000)  # nine charts, on a busy machine
        complaints: list[str] = []
        page.on("console", lambda m, to=complaints: m.type == "error" and to.append(m.text))
        page.on("pageerror", lambda e, to=complaints: to.append(str(e)))
        ours = (site.as_uri(), "data:", "blob:")
        page.on(
            "request",
            lambda r, to=complaints, ours=ours: r.url.startswith(ours) or to.append(r.url),
        )
        page.goto((site / f"{name}.html").as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        page.wait_for_function(DRAWN)
        assert page.locator("canvas").count() == page.locator(".qbkit-chart").count(), name
        assert page.evaluate("document.documentElement.scrollWidth") <= width_px, name
        assert complaints == [], name
        page.close()


SHOWN = """[...document.querySelectorAll('#implementations tbody tr')]
    .filter((row) => !row.hidden).map((row) => row.dataset.name)"""


@pytest.mark.browser
def test_a_question_leads_to_its_page_and_filters_stay_in_the_address(browser, site: Path):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((site / "index.html").as_uri())
    everything = page.evaluate(SHOWN)
    page.fill("input[name=q]", "what does quinn's BBR do, and why?")
    assert page.evaluate(SHOWN) == ["quinn:bbr"]
    page.reload()
    assert page.evaluate(SHOWN) == ["quinn:bbr"]
    page.press("input[name=q]", "Enter")
    page.wait_for_url("**/implementations/quinn-bbr.html")
    page.go_back()
    page.wait_for_function(f"({SHOWN}).length === 1")  # the page's script has run again
    page.fill("input[name=q]", "zzz")
    assert page.evaluate(SHOWN) == []
    page.click(".reset")
    assert sorted(page.evaluate(SHOWN)) == sorted(everything)
    page.fill("input[name=q]", "twice")  # what its fault does
    assert page.evaluate(SHOWN) == ["aioquic:cubic"]
    page.fill("input[name=q]", "")
    also = page.get_attribute("tr[data-kind=fault]", "data-also")
    page.select_option("select[name=verdict]", also)
    assert "aioquic:cubic" in page.evaluate(SHOWN)
    page.select_option("select[name=verdict]", "")
    page.select_option("select[name=family]", "BBR")
    page.click("[data-sort=name]")
    shown = page.evaluate(SHOWN)
    assert shown == sorted(shown)
    assert all("bbr" in name for name in shown)
    page.click("[data-sort=name]")
    assert page.evaluate(SHOWN) == shown[::-1]
    assert {"family=BBR", "sort=name", "order=down"} == set(page.url.partition("?")[2].split("&"))
    page.reload()
    assert page.evaluate(SHOWN) == shown[::-1]
    page.goto((site / "index.html").as_uri() + "?family=bbr#how-to-read-it")  # as one types it
    assert sorted(page.evaluate(SHOWN)) == shown
    assert page.url.endswith("?family=BBR#how-to-read-it")
    assert page.evaluate("scrollY") > 0
    page.close()


@pytest.mark.browser
def test_a_command_is_copied(browser, site: Path):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto((site / "implementations/qbkit-cubic.html").as_uri())
    command = page.locator(".repeat + .command")
    command.locator("button").click()
    command.get_by_text(re.compile("^(Copied|Selected)$")).wait_for()
    selected = page.evaluate("String(getSelection()) || navigator.clipboard.readText()")
    assert selected == command.locator("code").text_content()
    context.close()


@pytest.mark.browser
def test_a_link_to_a_folded_section_opens_it(browser, site: Path):
    page = browser.new_page()
    page.goto((site / "implementations/aioquic-cubic.html").as_uri() + "#parameters")
    assert page.locator("#parameters").get_attribute("open") is not None
    page.close()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "10 Mbit/s, 20 ms, 1 BDP, 60 s"),
        ({"duration_s": [60]}, "10 Mbit/s, 20 ms, 1 BDP, 60 s"),
        ({"duration_s": [60, 120]}, "10 Mbit/s, 20 ms, 1 BDP"),
        ({"bottleneck.qdisc": ["fifo"]}, "10 Mbit/s, 20 ms, 1 BDP, 60 s"),
    ],
)
def test_the_atlas_of_ones_own_sweep_names_its_folder(tmp_path, fields, words):
    whole = qb.load_sweep(DATA / "controllers/cubic.yaml")
    cell = whole.sel({"bottleneck.rtt_ms": 20, "bottleneck.buffer_bdp": 1}, drop=True)
    link = {"rate_mbps": 10, "rtt_ms": 20, "buffer_bdp": 1}
    base = {"bottleneck": link, "flows": ["tcp:cubic", "tcp:cubic"], "duration_s": 60}
    names = cell["flows.0"].values.tolist()
    document = {"seed": cell.seed.values.tolist(), "flows.0": names, **fields}
    sweep = qb.Sweep(name="one", base=base, sweep=document)
    mine = tmp_path / "my results"
    (mine / "far").mkdir(parents=True)
    (mine / "far/one.yaml").write_text(sweep.model_dump_json())
    cube = cell.drop_vars([name for name in cell if name.startswith(("map_", "hull_"))])
    for field, values in fields.items():
        cube = cube.expand_dims({field: values})
    cube.attrs["sweep"] = sweep.model_dump_json()
    write_cube(cube, mine / "far/one.yaml")
    site = write_atlas(mine, tmp_path / "site").parent
    (other,) = set(names) - {"tcp:cubic"}
    page = unescape((site / page_of(other)).read_text())
    assert f"Beside tcp:cubic at {words}: conformance" in page
    assert f"qbkit reproduce 'my results'/far/one.yaml --flow {other}" in page
    assert " at , to the printed digit" not in page
    assert "qbkit reproduce data/" not in page


def test_a_folder_without_sweeps_is_refused(tmp_path):
    with pytest.raises(StoreError, match="holds no conformance sweep; give the folder"):
        write_atlas(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_changed_file_is_refused(data, tmp_path):
    copy = tmp_path / "data"
    shutil.copytree(data / "controllers", copy / "controllers")
    (copy / "controllers/cubic.nc").write_bytes(b"other")
    with pytest.raises(StoreError, match="is not the file that was published"):
        write_atlas(copy, tmp_path / "out")


def test_a_command_quotes_a_setting_of_several_words():
    setting = {"bottleneck.rate_mbps": 10.0, "bottleneck.preset": "lte seed=2", "seed": 3}
    words = again._where(setting)
    assert words == " --rate-mbps 10 --where preset='lte seed=2' --where seed=3"
