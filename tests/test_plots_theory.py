"""Measurements beside models: what is drawn, and what bad input gets."""

from __future__ import annotations

import csv
import io

import altair as alt
import numpy as np
import pandas as pd
import pytest

from qbkit.errors import MetricError
from qbkit.metrics import bbr_share, equal_share, mathis_window_packets
from qbkit.plots import share_by_buffer_chart, share_by_flows_chart, window_by_loss_chart

BUFFERS = pd.DataFrame(
    {
        "label": ["tcp:bbr", "tcp:bbr", "tcp:bbr", "mine"],
        "buffer_bdp": [0.5, 4, 4, 4],
        "share": [0.9, 0.5, 0.7, 0.2],
    }
)


def rows(chart: alt.LayerChart, layer: int) -> list[dict[str, str]]:
    """The table of a layer as it is embedded."""
    spec = chart.to_dict()
    text = spec["datasets"][spec["layer"][layer]["data"]["name"]]
    return list(csv.DictReader(io.StringIO(text)))


def test_a_model_is_drawn_where_it_holds_in_the_colour_of_its_controller():
    chart = share_by_buffer_chart(
        BUFFERS, models={"tcp:bbr": lambda x: bbr_share(x, rate_mbps=10, rtt_ms=40)}
    )
    lines, points = rows(chart, 0), rows(chart, 1)
    measured = {(r["label"], r["x"]): float(r["y"]) for r in lines if r["kind"] == "measured"}
    assert measured == {("tcp:bbr", "0.5"): 0.9, ("tcp:bbr", "4"): 0.6, ("mine", "4"): 0.2}
    model = [(float(r["x"]), float(r["y"])) for r in lines if r["kind"] == "model"]
    assert min(x for x, _ in model) >= 1  # below, the model has no answer
    assert model[-1] == (4, pytest.approx(float(bbr_share(4, rate_mbps=10, rtt_ms=40)), abs=1e-3))
    assert len(points) == len(BUFFERS)
    scale = chart.to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert scale["domain"] == ["tcp:bbr", "mine"]


def test_the_number_of_flows_is_whole():
    frame = pd.DataFrame({"label": "mine", "flows": [1, 4], "share": [0.5, 0.2]})
    chart = share_by_flows_chart(frame, models={"equal shares": lambda n: equal_share(1, n)})
    model = [(r["x"], r["y"]) for r in rows(chart, 0) if r["kind"] == "model"]
    assert model == [("1", "0.5"), ("2", "0.333"), ("3", "0.25"), ("4", "0.2")]


def test_models_of_windows_take_the_loss_rate_and_the_axis_shows_percent():
    frame = pd.DataFrame(
        {"label": "mine", "loss_rate": [0, 0.001, 0.01], "window_packets": [90.0, 40, 12]}
    )
    chart = window_by_loss_chart(frame, models={"Mathis": mathis_window_packets})
    # The run without a loss has no place on a logarithmic axis.
    assert [r["x"] for r in rows(chart, 1)] == ["0.1", "1"]
    model = {r["x"]: float(r["y"]) for r in rows(chart, 0) if r["kind"] == "model"}
    assert model["1"] == pytest.approx(np.sqrt(150), abs=1e-3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: share_by_buffer_chart(BUFFERS.drop(columns="share")), "have no column share"),
        (lambda: share_by_buffer_chart(BUFFERS[:0]), "have no rows"),
        (lambda: window_by_loss_chart(BUFFERS), "have no column loss_rate, window_packets"),
        (
            lambda: share_by_buffer_chart(
                BUFFERS, models={"BBR": lambda x: bbr_share(x / 100, rate_mbps=10, rtt_ms=40)}
            ),
            "the model BBR is valid nowhere on this axis: the model of BBR's share needs a",
        ),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(call, words):
    with pytest.raises(MetricError, match=words):
        call()
