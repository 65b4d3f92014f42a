"""Charts of connections over time, and the figures in them, on events made by hand."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from chart_words import said, tables_of
from hypothesis import given
from hypothesis import strategies as st
from test_plots_browser import PANEL_WIDTH, browser, opened, settled, zooms_and_has_rules

from qbkit import plots
from qbkit.errors import MetricError
from qbkit.metrics.flows import over_time as figures
from qbkit.metrics.flows.retransmissions import first_retransmission, regression, transfer_table
from qbkit.plots.flows.connection import thinned
from qbkit.plots.flows.recovery import draws_losses
from qbkit.traces.logs.events import EventTables

__all__ = ["browser"]  # a fixture, used by its name

RTT_S, GAP_S, SIZE = 0.1, 0.01, 1000
MARKS = """() => {
    // Where the brushed span is drawn: its rectangles are those with a datum that has from_s only.
    const found = [];
    const walk = (item) => {
        const d = item.datum;
        if (d && 'from_s' in d && !('state' in d)) found.push([d.from_s, d.to_s]);
        (item.items || []).forEach(walk);
    };
    walk(document.querySelector('.qbkit-chart').vegaView.scenegraph().root);
    return found;
}"""
NUMBERS = """() => {
    // Texts beside the panels, from top to bottom.
    const found = [];
    const walk = (item) => {
        if (item.text !== undefined && item.fontWeight === 600 && item.datum.label)
            found.push(String(item.text));
        [...(item.items || [])].sort((a, b) => (a.y || 0) - (b.y || 0)).forEach(walk);
    };
    walk(document.querySelector('.qbkit-chart').vegaView.scenegraph().root);
    return found;
}"""


def events(
    packets: int = 200,
    *,
    lost: tuple[int, ...] = (),
    late: tuple[int, ...] = (),
    rate: bool = False,
):
    """A packet of 1000 B each 10 ms, acknowledged after 100 ms; cwnd 10 kB and 1 kB more an RTT.

    ``lost`` are declared lost 155 ms after they were sent; of them ``late`` come after all.
    """
    happened = []
    for n in range(packets):
        sent_s = n * GAP_S
        happened.append((sent_s, "sent", n))
        happened.append((sent_s + 0.155, "lost", n) if n in lost else (sent_s + RTT_S, "acked", n))
        if n in late:
            happened.append((sent_s + 0.2, "acked", n))
    tables = EventTables()
    for time_s, what, n in sorted(happened):
        if what == "sent":
            tables.sent(time_s, "application", n, SIZE, offset_bytes=n * SIZE)
        elif what == "acked":
            tables.acked(time_s, "application", n, n)
        else:
            tables.lost(time_s, "application", n, "packet_threshold")
    rates = {"delivery_rate_mbps": 0.7, "pacing_rate_mbps": 1.0} if rate else {}
    for k in range(packets // 10):
        cwnd = 10_000 + 1000 * k
        tables.metrics(k * RTT_S, cwnd_bytes=cwnd, srtt_ms=100, bytes_in_flight=10_000, **rates)
    return tables.dataset(source="test")


def nothing():
    """A log with one packet and nothing else."""
    tables = EventTables()
    tables.sent(0.5, "application", 0, None)
    return tables.dataset(source="test")


def test_figures_of_a_connection_by_hand():
    e = events()
    time_s, total = figures.bytes_acked(e)
    assert (len(time_s), total[0], total[-1]) == (200, SIZE, 200 * SIZE)
    assert time_s[0] == pytest.approx(RTT_S)
    ends_s, step = figures.round_trips(e)
    assert step == 1
    assert np.diff(ends_s) == pytest.approx(RTT_S)
    assert len(ends_s) == pytest.approx((200 * GAP_S + RTT_S) / RTT_S, abs=1)
    _, mbps = figures.acked_rate(e)
    assert np.median(mbps) == pytest.approx(SIZE * 8 / 1e6 / GAP_S)  # 0.8 Mbit/s
    growth_s, growth = figures.cwnd_growth(e)
    assert growth[(growth_s > 0.15) & (growth_s < 1.85)] == pytest.approx(1000, abs=1000)
    assert growth[growth_s < 1.85].mean() == pytest.approx(1000, rel=0.1)


def test_rtt_from_packets_where_no_metric_is_logged():
    tables = EventTables()
    for n in range(5):
        tables.sent(n * 1.0, "application", n, SIZE)
        tables.acked(n * 1.0 + 0.25, "application", n, n)
    _, rtt_s = figures.rtt(tables.dataset(source="test"))
    assert rtt_s == pytest.approx(0.25)
    with pytest.raises(MetricError, match="neither RTTs nor packets with their ack"):
        figures.rtt(nothing())


def test_recovery_by_hand():
    # 20 is declared lost at 0.355 s; 21 was sent before that, so it begins no second recovery. The
    # first packet sent after that leaves at 0.36 s and is acknowledged at 0.46 s. Then 80.
    spans = figures.recoveries(events(lost=(20, 21, 80)))
    assert [(s.from_s, s.to_s) for s in spans] == [
        (pytest.approx(0.355), pytest.approx(0.46)),
        (pytest.approx(0.955), pytest.approx(1.06)),
    ]


def test_a_drop_is_detected_three_packets_later():
    tables = EventTables()
    for n in range(10):
        tables.sent(n * GAP_S, "application", n, SIZE)
    tables.lost(0.02, "application", 2, "queue")  # when the queue dropped it
    for n in (0, 1, *range(3, 10)):
        tables.acked(0.2 + n * GAP_S, "application", n, n)
    spans = figures.recoveries(tables.dataset(source="run"))
    assert spans[0].from_s == pytest.approx(0.25)  # the acknowledgement of 5


def test_first_retransmission_by_hand():
    tables = EventTables()
    for n, offset in enumerate([-1, 0, 1000, 2000, 1000, 3000, 0]):
        tables.sent(0.1 * n, "application", n, SIZE, stream=0, offset_bytes=offset)
    tables.acked(1.7, "application", 0, 6)
    assert first_retransmission(tables.dataset(source="test")) == (1000, pytest.approx(1.7))
    offset, time_s = first_retransmission(events())
    assert np.isnan(offset)
    assert time_s == pytest.approx(199 * GAP_S + RTT_S)
    # Without offsets: what was sent before the first packet that was lost.
    silent = events(lost=(20, 80))
    silent["sent_offset_bytes"][:] = -1
    assert first_retransmission(silent)[0] == 20 * SIZE
    with pytest.raises(MetricError, match="this log has no sent packet"):
        first_retransmission(EventTables().dataset(source="test"))


def test_regression_by_hand():
    # Through (0, 1), (1, 2), (2, 2): slope 1/2, intercept 7/6, residual sum of squares 1/6.
    fit = regression(np.array([0, 1, 2, np.nan]), np.array([1, 2, 2, 9.0]))
    assert fit.slope_s_per_byte == pytest.approx(0.5)
    assert fit.intercept_s == pytest.approx(7 / 6)
    assert fit.r_squared == pytest.approx(0.75)
    assert fit.transfers == 3
    middle = fit.band_s(np.array([1.0]))
    assert middle == pytest.approx(12.706 * (1 / 6) ** 0.5 * (1 / 3) ** 0.5, rel=1e-3)
    for x in ([1, 1, 1], [1, 2], [np.nan] * 5):
        with pytest.raises(MetricError, match="needs 3 transfers"):
            regression(np.array(x, float), np.arange(len(x), dtype=float))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000), st.integers(4, 500))
def test_thinning_keeps_ends_and_extremes(values, rows):
    array = np.array(values)
    kept = thinned(array, rows)
    assert len(kept) <= max(rows, 4)
    assert np.all(np.diff(kept) > 0)
    assert {kept[0], kept[-1]} == {0, len(array) - 1}
    assert array[kept].min() == array.min()
    assert array[kept].max() == array.max()


@pytest.mark.slow
def test_the_window_chart_has_window_and_growth():
    chart = plots.cwnd_chart({"a": events(), "b": events(100)}, reference="b")
    kinds = next(t for t in tables_of(chart) if "kind" in t[0])
    window = [r for r in kinds if r["label"] == "a" and r["kind"] == "congestion window"]
    assert [float(r["kb"]) for r in window] == pytest.approx([10 + k for k in range(20)])
    assert not [r for r in kinds if r["kind"] == "slow start threshold"]  # logged by none
    assert len(chart.to_dict()["vconcat"]) == 2


@pytest.mark.slow
def test_the_mean_growth_of_a_long_connection_is_not_that_of_its_extremes():
    tables = EventTables()
    for k in range(9000):  # grows by 1 kB an RTT, nine times, and then falls back
        tables.metrics(k * RTT_S, cwnd_bytes=10_000 + 1000 * (k % 10), srtt_ms=100)
    log = tables.dataset(source="test")
    growth = figures.cwnd_growth(log)[1] / 1e3
    assert np.nanmean(growth) == pytest.approx(0, abs=0.01)
    found = [t for t in tables_of(plots.cwnd_chart({"a": log})) if set(t[0]) == {*t[0], "kb"}]
    means = [np.mean([float(row["kb"]) for row in t]) for t in found if "kind" not in t[0]]
    assert min(map(abs, means)) < 0.01  # the number beside the panel
    assert all(len(t) <= 5000 for t in found)


@pytest.mark.slow
def test_bytes_acked_are_compared_with_the_reference():
    logs = {"a": events(lost=(20, 21)), "b": events(), "short": events(100)}
    ahead = next(t for t in tables_of(plots.bytes_acked_chart(logs, reference="b")) if "kb" in t[0])
    assert {row["label"]: float(row["kb"]) for row in ahead} == {"a": -2, "b": 0, "short": 0}
    # Nothing is known of the time after a log's end.
    assert max(float(row["time_s"]) for row in ahead) == pytest.approx(99 * GAP_S + RTT_S)
    assert len(plots.bytes_acked_chart({"a": events()}).to_dict()["vconcat"]) == 1


@pytest.mark.slow
def test_a_receivers_log_shows_what_it_received():
    tables = EventTables()
    tables.sent(0, "application", 0, 100)
    for n in range(10):
        tables.received(0.1 + n * GAP_S, "application", n, SIZE)
    e = tables.dataset(source="test")
    assert figures.bytes_acked(e)[1][-1] == 10 * SIZE
    assert "Bytes received, from a receiver's log: a." in said(plots.bytes_acked_chart({"a": e}))


@pytest.mark.slow
def test_the_bandwidth_chart_says_where_its_numbers_come_from():
    chart = plots.bandwidth_chart({"reported": events(rate=True), "computed": events()})
    words = said(chart)
    assert "Bandwidth of reported: the delivery rate that the stack reports." in words
    assert "Bandwidth of computed: whole packets ACKed in a round trip" in words
    rows = next(t for t in tables_of(chart) if "kind" in t[0])
    assert {(r["label"], r["kind"]) for r in rows} == {
        ("reported", "bandwidth"),
        ("reported", "pacing rate"),
        ("computed", "bandwidth"),
    }
    assert {r["value"] for r in rows if r["kind"] == "pacing rate"} == {"1"}


@pytest.mark.slow
def test_losses_are_counted_by_trigger_and_kind():
    chart = plots.loss_chart(events(lost=(20, 21, 80), late=(80,)))
    rows = next(t for t in tables_of(chart) if "trigger" in t[0])
    found = {(r["trigger"], r["spurious"]): int(r["packets"]) for r in rows}
    assert sum(int(r["packets"]) for r in rows) == 3
    assert found["packet threshold", "true"] == 1
    assert "inferred from losses (RFC 9002 §7.3.2)" in said(chart)


def test_a_second_without_a_loss_in_a_steady_state_has_no_panel_of_losses():
    ds = events().drop_dims("state")
    steady = ds.assign(
        state_time_s=("state", [0.5]), state_name=("state", ["congestion_avoidance"])
    )
    startup = ds.assign(state_time_s=("state", [0.5]), state_name=("state", ["slow_start"]))
    assert [draws_losses(each) for each in (steady, startup, events(lost=(20,)))] == [
        False,
        True,
        True,
    ]


@pytest.mark.slow
def test_states_of_a_bbr_have_one_name_each_and_cruise_stays_white():
    ds = events(lost=(20,))
    names = ["bbr_startup", "bbr_probe_bw_cruise", "bbr_probe_bw_up"]
    ds = ds.drop_dims("state").assign(
        state_time_s=("state", [0.0, 0.5, 1.0]), state_name=("state", names)
    )
    rows = next(t for t in tables_of(plots.loss_chart(ds)) if "state" in t[0])
    assert {row["state"] for row in rows} == {"startup", "probe bw up", "recovery"}


def handshake(point: str = "client", mine: str = "sent"):
    theirs = "received" if mine == "sent" else "sent"
    tables = EventTables()
    tables.handshake.put(0.0, mine, "initial", 0, 1200, ["crypto", "padding"])
    tables.handshake.put(0.04, theirs, "initial", 0, 1200, ["ACK 0-0", "crypto"])
    tables.handshake.put(0.04, theirs, "handshake", 1, 900, ["crypto"])
    tables.handshake.put(0.041, mine, "application", 2, 600, ["stream"])
    ds = tables.dataset(source="test")
    ds.attrs["vantage_point"] = point
    return ds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ds", "delay_ms", "sent_ms", "received_ms"),
    [
        (handshake(), None, [0, 20, 20, 41], [20, 40, 40, 61]),  # from the first answer
        (handshake(), 5, [0, 35, 35, 41], [5, 40, 40, 46]),
        (handshake(""), 5, [0, 35, 35, 41], [5, 40, 40, 46]),  # who began is the client
        (handshake("server", "received"), 5, [-5, 40, 40, 36], [0, 45, 45, 41]),
        (handshake("network"), 10, [-5, 35, 35, 36], [5, 45, 45, 46]),
    ],
)
def test_handshake_times_at_both_ends(ds, delay_ms, sent_ms, received_ms):
    chart = plots.handshake_chart(ds, one_way_delay_ms=delay_ms)
    arrows = next(t for t in tables_of(chart) if "to_ms" in t[0])
    assert sorted(float(r["from_ms"]) for r in arrows) == pytest.approx(sorted(sent_ms))
    assert sorted(float(r["to_ms"]) for r in arrows) == pytest.approx(sorted(received_ms))
    assert [r["sender"] for r in arrows] == ["client", "server", "server", "client"]
    texts = [r["text"] for t in tables_of(chart) if "text" in t[0] for r in t]
    assert "Initial 0: crypto, padding" in texts
    assert "1-RTT 2: stream" in texts


def test_the_regression_is_in_the_words():
    rng = np.random.default_rng(1)
    offset = rng.uniform(0, 1e6, 30)
    rows = pd.DataFrame({"label": "a", "offset_bytes": offset, "time_s": 3 - offset / 1e6})
    rows.loc[30] = ["a", np.nan, 1.0]
    rows.loc[31] = ["b", 1000.0, 2.0]
    chart = plots.retransmission_chart(rows, reference="b")
    words = said(chart)
    assert "a: −0.1 s per 100 kB, r² = 1.00" in words
    assert "30 transfers); 1 of 31 without a retransmission" in words
    assert "b: a regression needs 3 transfers" in words
    assert max(len(t) for t in tables_of(chart)) == 40


def test_frames_of_runs_are_told_from_packets_of_logs():
    run = events().assign_attrs(source="run")
    assert "Frame bytes ACKed (kB)" in json.dumps(plots.bytes_acked_chart({"a": run}).to_dict())
    words = said(plots.bytes_acked_chart({"a": run, "b": events()}))
    assert "Whole frames count, with their headers: a." in words
    assert "Whole frames" not in said(plots.bytes_acked_chart({"b": events()}))


def test_bad_input_is_one_sentence():
    with pytest.raises(MetricError, match="the log of a, b reports no congestion window"):
        plots.cwnd_chart({"a": nothing(), "b": nothing()})
    with pytest.raises(MetricError, match="the log of b reports no bytes ACKed"):
        plots.bytes_acked_chart({"b": nothing()})
    with pytest.raises(MetricError, match="the log of b reports no bandwidth"):
        plots.bandwidth_chart({"b": nothing()})
    with pytest.raises(MetricError, match="no connection reports a loss"):
        plots.loss_chart(events())
    with pytest.raises(MetricError, match="has no handshake packets"):
        plots.handshake_chart(events())
    with pytest.raises(MetricError, match="the reference 'c' is not among what is drawn: a"):
        plots.root_cause_chart({"a": events()}, reference="c")
    with pytest.raises(MetricError, match="no connection to draw"):
        plots.root_cause_chart({})
    with pytest.raises(MetricError, match="the log has no event"):
        plots.cwnd_chart({"a": EventTables().dataset(source="test")})
    with pytest.raises(MetricError, match="report no windows, ACKs or losses"):
        plots.root_cause_chart({"a": nothing()})
    with pytest.raises(MetricError, match="no column offset_bytes, time_s"):
        plots.retransmission_chart(pd.DataFrame({"label": ["a"]}))
    with pytest.raises(MetricError, match="no transfer has a retransmission"):
        plots.retransmission_chart(transfer_table({"a": [events()]}))


@pytest.mark.slow
def test_what_is_not_logged_is_left_out_of_the_root_cause_chart():
    chart = plots.root_cause_chart({"a": events(lost=(20,)), "b": nothing()})
    assert "Not reported: congestion window of b." in said(chart)
    assert len(chart.to_dict()["vconcat"]) == 5  # nobody to be ahead of


@pytest.mark.slow
def test_long_connections_stay_small():
    e = {label: events(12_000, lost=tuple(range(100, 12_000, 7))) for label in "abc"}
    spec = plots.root_cause_chart(e).to_dict()
    assert all(len(t) <= 5000 for t in tables_of(spec))
    assert len(json.dumps(spec)) < 1_500_000


@pytest.mark.browser
@pytest.mark.slow
def test_a_span_brushed_in_one_panel_is_marked_in_all(browser, tmp_path):
    e = {"a": events(lost=(20, 80)), "b": events(lost=(50,))}
    chart = plots.root_cause_chart(e)
    panels = len(chart.vconcat)
    duration_s = 199 * GAP_S + RTT_S
    with opened(browser, plots.save_chart(chart, tmp_path / "all.html")) as page:
        page.set_viewport_size({"width": 900, "height": 1500})
        settled(page)
        before = page.evaluate(NUMBERS)
        assert before[-2:] == ["2", "1"]  # losses of a and b
        for panel_from_bottom in (0, 2):
            assert page.evaluate(MARKS) == []
            brush(page, panel_from_bottom)
            marks = page.evaluate(MARKS)
            assert len(marks) == panels
            assert all(mark == marks[0] for mark in marks)
            from_s, to_s = marks[0]
            width = page.evaluate(PANEL_WIDTH)
            assert to_s - from_s == pytest.approx(200 / width * duration_s, rel=0.05)
            after = page.evaluate(NUMBERS)
            inside = [from_s <= 0.155 + n * GAP_S <= to_s for n in (20, 80, 50)]
            lost = [sum(inside[:2]), inside[2] * 1]  # of a, of b
            assert after[-2:] == [str(n) for n in lost if n]
            assert after != before
            x, y = panel_place(page, panel_from_bottom)
            page.mouse.dblclick(x + 450, y)
            settled(page)
            assert page.evaluate(NUMBERS) == before


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("draw", [plots.cwnd_chart, plots.loss_chart, plots.root_cause_chart])
def test_the_wheel_zooms_with_ctrl_only_and_a_rule_follows_the_pointer(browser, tmp_path, draw):
    chart = draw({"a": events(lost=(20, 80)), "b": events(lost=(50,))})
    with opened(browser, plots.save_chart(chart, tmp_path / "a.html")) as page:
        zooms_and_has_rules(page, len(chart.vconcat), 199 * GAP_S + RTT_S)


def brush(page, panel_from_bottom: int) -> None:
    """Drag over a panel, from 100 to 300 pixels of its left edge."""
    x, y = panel_place(page, panel_from_bottom)
    page.mouse.move(x + 100, y)
    page.mouse.down()
    page.mouse.move(x + 200, y, steps=4)
    page.mouse.move(x + 300, y, steps=4)
    page.mouse.up()
    settled(page)


def panel_place(page, panel_from_bottom: int) -> tuple[float, float]:
    """Left edge and middle of a panel on the page."""
    box = page.locator("canvas").bounding_box()
    x, y = page.evaluate(PLACE, panel_from_bottom)
    return box["x"] + x, box["y"] + y


PLACE = """(panel) => {
    // Left edge and middle of a panel, counted from the bottom; its width is the widest.
    const found = [];
    const wide = @WIDTH@;
    const walk = (item, x, y) => {
        for (const child of item.items || []) {
            const [cx, cy] = [x + (child.x || 0), y + (child.y || 0)];
            if (child.context && child.width === wide) found.push([cx, cy + child.height / 2]);
            else walk(child, cx, cy);
        }
    };
    const view = document.querySelector('.qbkit-chart').vegaView;
    const [[x0, y0], pad] = [view.origin(), view.padding()];
    walk(view.scenegraph().root, x0 + pad.left, y0 + pad.top);
    found.sort((a, b) => b[1] - a[1]);
    return found[panel];
}""".replace("@WIDTH@", PANEL_WIDTH)
