"""The gallery: one column of panels a run, on shared scales, with the reference behind."""

from __future__ import annotations

import pytest
from synthetic import synthetic_run

from qbkit.errors import MetricError
from qbkit.plots import gallery_chart

RUN = synthetic_run()


def panels(chart) -> list[dict]:
    """Every panel of the chart's specification."""
    found = []

    def walk(spec: dict) -> None:
        for name in ("vconcat", "hconcat", "concat"):
            for part in spec.get(name, []):
                walk(part)
        if "layer" in spec:
            found.append(spec)

    walk(chart.to_dict())
    return found


@pytest.mark.slow
def test_three_panels_a_run_with_the_reference_behind_all_others():
    drawn = panels(
        gallery_chart(
            dict.fromkeys(("tcp:cubic", "x:cubic", "y:cubic"), RUN), reference="tcp:cubic"
        )
    )
    assert len(drawn) == 9
    layers = [len(panel["layer"]) for panel in drawn]
    assert layers == [2, 3, 3] * 3  # of each, the points that bear the tooltips
    tops = {
        panel["layer"][0]["encoding"]["y"]["field"]: panel["layer"][0]["encoding"]["y"]["scale"][
            "domain"
        ]
        for panel in drawn
    }
    assert len({str(t) for t in tops.values()}) == 3


@pytest.mark.slow
def test_many_runs_go_into_blocks():
    chart = gallery_chart({f"s{i}:cubic": RUN for i in range(5)}, columns=2).to_dict()
    assert [len(block["concat"]) for block in chart["vconcat"]] == [6, 6, 3]


def test_the_title_says_whether_the_flows_were_alone():
    two, one = synthetic_run(duration_s=3), synthetic_run(flows=("tcp:cubic",), duration_s=3)
    assert gallery_chart({"a": one}).title.text == "Alone on the link"
    assert gallery_chart({"a": one, "b": two}).title.text == "The first flow of each run"
    assert gallery_chart({"b": two}, title="Pairs").title.text == "Pairs"


def test_bad_input_is_one_sentence():
    with pytest.raises(MetricError, match="there is no run to draw"):
        gallery_chart({})
    with pytest.raises(MetricError, match="the reference 'b' is not among what is drawn: a"):
        gallery_chart({"a": RUN}, reference="b")


def test_the_panels_are_not_copied_to_write_a_gallery_down():
    chart = gallery_chart({"a": RUN, "b": RUN})
    shared = chart.copy(deep=False)
    assert type(shared) is type(chart)
    assert all(one is other for one, other in zip(shared.vconcat, chart.vconcat, strict=True))
    assert shared.to_dict() == chart.to_dict()
    shared.title = "another"
    assert chart.title != "another"
    assert chart.copy().vconcat[0] is not chart.vconcat[0]
