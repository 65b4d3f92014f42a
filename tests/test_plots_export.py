import base64
import gzip
import json
import re
import struct

import pytest
from synthetic import synthetic_run

from qbkit import plots
from qbkit.errors import StoreError
from qbkit.metrics import envelope
from qbkit.plots.drawing import render
from qbkit.plots.drawing.pointer import HINT, without_hints
from qbkit.plots.drawing.render import script_json


@pytest.fixture(scope="module")
def ds():
    return synthetic_run()


def png_size(content: bytes) -> tuple[int, int]:
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    return width, height


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["timeline", "envelope", "linked"])
def test_pictures_are_drawn_without_internet(ds, tmp_path, kind):
    chart = {
        "timeline": lambda: plots.timeline_chart(ds),
        "envelope": lambda: plots.envelope_chart({"a": envelope(ds)}),
        "linked": lambda: plots.linked_chart(ds),
    }[kind]()
    content = plots.save_chart(chart, tmp_path / "chart.png").read_bytes()
    width, height = png_size(content)
    # Twice the chart's pixels: at least its panels, at most a wide screen.
    assert 800 <= width <= 2400
    assert 700 <= height <= 1600
    assert len(content) > 20_000


@pytest.mark.slow
def test_every_ending(ds, tmp_path):
    chart = plots.envelope_chart({"a": envelope(ds)})
    heads = {"svg": b"<svg", "pdf": b"%PDF", "html": b"<!DOCTYPE html>", "json": b"{"}
    for ending, head in heads.items():
        path = plots.save_chart(chart, tmp_path / f"chart.{ending.upper()}")
        assert path.read_bytes().startswith(head)
    assert json.loads((tmp_path / "chart.JSON").read_text())["$schema"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(f"chart.{e.upper()}" for e in heads)
    page = (tmp_path / "chart.HTML").read_text()
    assert "src=" not in page and "cdn" not in page.lower().replace("@bundle@", "")[:2000]


def test_still_pictures_have_no_words_on_what_only_a_page_can_do(ds, tmp_path):
    for chart in (plots.timeline_chart(ds), plots.linked_chart(ds)):
        shown = " ".join(plots.save_chart(chart, tmp_path / "c.svg").read_text().split())
        assert not re.search("Drag|zoom|Double-click", shown)
        page = plots.save_chart(chart, tmp_path / "c.html").read_text()
        assert re.search("Drag.*zoom", page)
        assert "this notebook" not in page


@pytest.mark.parametrize(
    ("subtitle", "left"),
    [
        (HINT, ""),
        ("First. Click a cell to see its two flows (of the first seed). Last.", "First. Last."),
        ("Move the slider, or choose Play.", ""),
        ("Clicked packets of 1.5 ms.", "Clicked packets of 1.5 ms."),
    ],
)
def test_only_words_on_what_can_be_done_go(subtitle, left):
    spec = {"title": {"text": "T", "subtitle": subtitle}}
    assert without_hints(spec)["title"] == {"text": "T", "subtitle": left}


def test_saving_does_not_depend_on_the_theme_that_is_on(ds, tmp_path):
    import altair as alt

    chart = plots.envelope_chart({"a": envelope(ds)})
    with alt.theme.enable("dark"):
        path = plots.save_chart(chart, tmp_path / "chart.json")
    assert json.loads(path.read_text())["config"]["background"] == "white"


@pytest.mark.slow
def test_an_unknown_ending_names_the_known(ds, tmp_path):
    with pytest.raises(StoreError, match=r"'a\.gif'; choose a name with \.png, \.svg, \.pdf"):
        plots.save_chart(plots.timeline_chart(ds), tmp_path / "a.gif")


@pytest.mark.slow
def test_a_missing_folder_leaves_nothing(ds, tmp_path):
    with pytest.raises(StoreError, match="cannot be written: No such file or directory"):
        plots.save_chart(plots.timeline_chart(ds), tmp_path / "none" / "a.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_folder_as_target_leaves_nothing_beside_it(ds, tmp_path):
    (tmp_path / "a.json").mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        plots.save_chart(plots.timeline_chart(ds), tmp_path / "a.json")
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_no_text_ends_the_script():
    hostile = "</script><script>alert(1)</script><!--&"
    text = script_json({"label": hostile})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"label": hostile}


@pytest.mark.slow
def test_a_displayed_chart_carries_all_it_needs(ds):
    bundle = plots.timeline_chart(ds)._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert 300_000 < len(bundle["text/html"]) < 700_000
    assert "http" not in bundle["text/html"].replace("https://vega.github.io/schema", "")


def test_a_description_is_folded_once_below_the_subtitle():
    spec = {"title": {"text": "T", "subtitle": "S."}, "description": "One.\nTwo.", "mark": "point"}
    fragment = render.chart_fragment(spec, bundled=False)
    more = "<details><summary>More</summary><div>One.</div><div>Two.</div></details>"
    assert f'<div class="qbkit-subtitle"><div>S.</div>{more}</div>' in fragment
    assert fragment.count("<summary>") == 1


@pytest.mark.slow
def test_vega_is_bundled_once_a_machine(tmp_path, monkeypatch):
    bundle = render._bundle.__wrapped__
    version = render.vegalite_version()
    monkeypatch.setenv("QBKIT_CACHE", str(tmp_path))
    first = bundle(version)
    (kept,) = (tmp_path / "vega").iterdir()
    assert gzip.decompress(kept.read_bytes()) == gzip.decompress(base64.b64decode(first))
    with monkeypatch.context() as patch:
        patch.setattr("vl_convert.javascript_bundle", lambda *a, **k: pytest.fail("bundled again"))
        assert bundle(version) == first
    monkeypatch.setenv("QBKIT_CACHE", "/proc/qbkit")  # a cache that cannot be written
    assert bundle(version) == first
