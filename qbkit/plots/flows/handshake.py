"""Handshake as a sequence of packets between client and server, coloured by number space.

After Yu and Benson, "Dissecting Performance of Production QUIC", WWW '21, figure 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from qbkit.errors import MetricError
from qbkit.metrics.flows.over_time import rtt
from qbkit.plots.drawing import theme
from qbkit.plots.drawing.captions import heading
from qbkit.plots.drawing.charts import LayerChart
from qbkit.plots.drawing.data import inline

SPACES = ("Initial", "Handshake", "1-RTT")
COLOURS = (theme.PALETTE[1], theme.PALETTE[2], theme.PALETTE[0])
BETWEEN, BESIDE = 230, 250
"""Pixels between the lifelines, and beside them for the contents of the packets."""
WIDTH = BETWEEN + 2 * BESIDE
LINE_HEIGHT = 13.5
"""Pixels between two labels of one side."""
LEAST_HEIGHT, MOST_HEIGHT = 260, 1400
MAX_PACKETS = 150
HEADROOM = 0.03


def handshake_chart(
    events: xr.Dataset, *, one_way_delay_ms: float | None = None, title: str = "Handshake"
) -> alt.LayerChart:
    """Sequence diagram of the packets of the handshake, and of the first with application data.

    Times are those of the log's vantage point; at the far end they are ``one_way_delay_ms``
    earlier or later (default: half the minimum RTT in the log). In a log of the network, packets
    pass the middle at their logged time. At most `MAX_PACKETS` are drawn. Raises MetricError if the
    log has no such packets, or if the delay is neither given nor known from the log.
    """
    packets, point = _packets(events)
    estimated = one_way_delay_ms is None
    delay_ms = _one_way_delay_ms(events) if one_way_delay_ms is None else one_way_delay_ms
    _place(packets, point, delay_ms)
    end_ms = float(packets["to_ms"].max())
    start_ms = min(0.0, float(packets["from_ms"].min()))
    side = max(int((packets["sender"] == who).sum()) for who in ("client", "server"))
    height = float(np.clip(LINE_HEIGHT * (side + 2), LEAST_HEIGHT, MOST_HEIGHT))
    margin_ms = HEADROOM * (end_ms - start_ms)
    time = alt.Scale(domain=[start_ms - margin_ms, end_ms + margin_ms], reverse=True, nice=False)
    _place_labels(packets, height / (end_ms - start_ms + 2 * margin_ms))
    sentences = [
        f"One-way delay {delay_ms:.3g} ms, {'half the minimum RTT' if estimated else 'as given'}; "
        f"times are those of the {point}.",
    ]
    if not any(packets["frames"]):
        sentences.append("The log does not report the contents of the packets.")
    layers = [*_lifelines(), *_arrows(packets, time, height), *_labels(packets, time)]
    return LayerChart(layer=layers).properties(
        width=WIDTH, height=height, **heading(title, sentences, WIDTH)
    )


def _packets(events: xr.Dataset) -> tuple[pd.DataFrame, str]:
    """The packets by time, and the log's vantage point: ``client``, ``server`` or ``network``."""
    if not events.sizes.get("handshake"):
        raise MetricError("the log has no handshake packets; use a QUIC log from its start")
    names = ("time_s", "direction", "space", "number", "size_bytes", "frames")
    packets = pd.DataFrame({name: events[f"handshake_{name}"].values for name in names})
    packets = packets.sort_values("time_s", kind="stable").head(MAX_PACKETS).reset_index(drop=True)
    point = str(events.attrs.get("vantage_point", ""))
    if point not in ("client", "server", "network"):
        point = "client" if packets["direction"][0] == "sent" else "server"
    mine = packets["direction"] == "sent"
    by_client = mine if point != "server" else ~mine
    packets["sender"] = np.where(by_client, "client", "server")
    packets["space_name"] = [SPACES[space] for space in packets["space"]]
    packets["text"] = [_text(row) for row in packets.itertuples()]
    return packets, point


def _text(packet: Any) -> str:
    """Label of a packet, such as ``Initial 0: crypto, padding``."""
    frames = list(dict.fromkeys(frame.strip() for frame in packet.frames.split(",")))
    what = ", ".join(frame.replace("_", " ") for frame in frames if frame)
    name = f"{packet.space_name} {packet.number}"
    return f"{name}: {what}" if what else name


def _one_way_delay_ms(events: xr.Dataset) -> float:
    """Half the minimum RTT; if none is reported, half the time to the first packet received."""
    try:
        return float(rtt(events)[1].min()) * 1e3 / 2
    except MetricError:
        sent = events["handshake_direction"].values == "sent"
        time_s = events["handshake_time_s"].values
        if sent.any() and not sent.all() and time_s[~sent].min() > time_s[sent].min():
            return float(time_s[~sent].min() - time_s[sent].min()) * 1e3 / 2
    raise MetricError("the log has no RTT; give one_way_delay_ms, the delay in one direction")


def _place(packets: pd.DataFrame, point: str, delay_ms: float) -> None:
    """Add when each packet was sent and received (ms), and both places on the x-axis."""
    if point == "network":
        before_ms: Any = delay_ms / 2
    else:
        before_ms = np.where(packets["sender"] == point, 0.0, delay_ms)
    packets["from_ms"] = packets["time_s"] * 1e3 - before_ms
    packets["to_ms"] = packets["from_ms"] + delay_ms
    by_client = packets["sender"] == "client"
    left, right = float(BESIDE), float(BESIDE + BETWEEN)
    packets["from_x"] = np.where(by_client, left, right)
    packets["to_x"] = np.where(by_client, right, left)


def _place_labels(packets: pd.DataFrame, px_per_ms: float) -> None:
    """Add the times of the labels: those of their packets, moved apart and kept above the end."""
    packets["label_ms"] = packets["from_ms"]
    gap_ms, end_ms = LINE_HEIGHT / px_per_ms, packets["to_ms"].max()
    for _, side in packets.sort_values("from_ms", kind="stable").groupby("sender"):
        places = side["from_ms"].to_numpy()
        steps = gap_ms * np.arange(len(places))
        later = np.maximum.accumulate(places - steps) + steps
        packets.loc[side.index, "label_ms"] = np.minimum(later, end_ms - steps[::-1])


def _lifelines() -> list[alt.Chart]:
    data = inline({"who": ["client", "server"], "x": [float(BESIDE), float(BESIDE + BETWEEN)]})
    base = alt.Chart(data).encode(x=_x("x"))
    names = base.mark_text(baseline="bottom", fontWeight=600, fontSize=12, dy=-6)
    return [
        base.mark_rule(color="#9AA5B1", strokeWidth=1.5),
        names.encode(y=alt.value(0), text="who:N"),
    ]


def _arrows(packets: pd.DataFrame, time: alt.Scale, height: float) -> list[alt.Chart]:
    columns = ["from_ms", "to_ms", "from_x", "to_x", "space_name", "sender", "number"]
    columns += ["size_bytes", "frames"]
    low, high = time.domain
    rise = (packets["to_ms"] - packets["from_ms"]) * height / (high - low)
    slope = np.degrees(np.arctan2(rise, packets["to_x"] - packets["from_x"]))
    table = {name: packets[name].to_numpy() for name in columns}
    data = inline({**table, "turn": (slope + 90).to_numpy()})
    y = alt.Y("from_ms:Q", title="Time (ms)", scale=time)
    lines = (
        alt.Chart(data)
        .mark_rule(strokeWidth=1.2, opacity=0.85)
        .encode(x=_x("from_x"), x2="to_x:Q", y=y, y2="to_ms:Q", color=_colour(), tooltip=TOOLTIP)
    )
    heads = (
        alt.Chart(data)
        .mark_point(shape="triangle", filled=True, size=42, opacity=1)
        .encode(
            x=_x("to_x"),
            y=alt.Y("to_ms:Q", scale=time),
            angle=alt.Angle("turn:Q", scale=None),
            color=_colour(),
            tooltip=TOOLTIP,
        )
    )
    return [lines, heads]


def _labels(packets: pd.DataFrame, time: alt.Scale) -> list[alt.Chart]:
    """Space, number and frames of each packet beside its sender, with a line to its arrow."""
    charts = []
    for who, sign in (("client", -1), ("server", 1)):
        side = packets[packets["sender"] == who]
        if not len(side):
            continue
        names = ["text", "from_ms", "label_ms", "from_x", "space_name"]
        place = (side["from_x"] + sign * 12).to_numpy()
        data = inline({**{name: side[name].to_numpy() for name in names}, "place": place})
        base = alt.Chart(data)
        thread = base.mark_rule(strokeWidth=0.6, opacity=0.6).encode(
            x=_x("from_x"),
            x2="place:Q",
            y=alt.Y("from_ms:Q", scale=time),
            y2="label_ms:Q",
            color=_colour(),
        )
        text = base.mark_text(
            align="right" if sign < 0 else "left", dx=sign * 3, fontSize=10.5, limit=BESIDE - 20
        ).encode(x=_x("place"), y=alt.Y("label_ms:Q", scale=time), text="text:N", color=_colour())
        charts += [thread, text]
    return charts


def _x(field: str) -> alt.X:
    """Position in pixels; the horizontal axis has no other meaning."""
    return alt.X(f"{field}:Q", axis=None, scale=alt.Scale(domain=[0, WIDTH], nice=False))


def _colour() -> alt.Color:
    scale = alt.Scale(domain=list(SPACES), range=list(COLOURS))
    return alt.Color("space_name:N", scale=scale, legend=alt.Legend(symbolType="stroke", offset=24))


TOOLTIP: Sequence[alt.Tooltip] = [
    alt.Tooltip("sender:N", title="Sent by"),
    alt.Tooltip("space_name:N", title="Packet number space"),
    alt.Tooltip("number:Q", title="Packet number", format="d"),
    alt.Tooltip("size_bytes:Q", title="Size (B)", format="d"),
    alt.Tooltip("frames:N", title="Frames"),
    alt.Tooltip("from_ms:Q", title="Sent (ms)", format=".3f"),
    alt.Tooltip("to_ms:Q", title="Received (ms)", format=".3f"),
]
