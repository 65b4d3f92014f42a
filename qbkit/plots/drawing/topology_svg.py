"""SVG drawings: the topology of an experiment, and sparklines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from qbkit.plots.drawing.link_words import buffer_words, link_words, path_words
from qbkit.plots.drawing.theme import colours
from qbkit.spec import Experiment

MAX_FLOWS = 6
"""Most flows that are drawn; a line of text has the number of further flows."""
WIDTH, ROW_HEIGHT, TOP = 760, 34, 46
LEFT_X, RIGHT_X, BOX_WIDTH, BOX_HEIGHT = 8, 592, 160, 24
QUEUE_WIDTH, QUEUE_HEIGHT = 92, 30
MAX_LETTERS = 22
BEND = 96
LANE = 18
"""Pixels between the middle and the queue of either direction."""


def topology_svg(experiment: Experiment) -> str:
    """Drawing of senders, queue (two in a parking lot) and receivers, with the link's parameters.

    With reverse traffic there are queues in both directions, and the senders of reverse flows are
    on the right.
    """
    labels = experiment.labels
    drawn = min(len(labels), MAX_FLOWS)
    height = TOP + max(drawn, 2) * ROW_HEIGHT + (18 if drawn < len(labels) else 0)
    middle = TOP + max(drawn, 2) * ROW_HEIGHT / 2
    queues_x = [WIDTH / 2 - QUEUE_WIDTH / 2]
    if experiment.topology == "parking_lot":
        queues_x = [232.0, 436.0]
    lanes = {"forward": middle}
    if experiment.has_return_queue:
        lanes = {"forward": middle - LANE, "reverse": middle + LANE}
    parts = [
        _wire(queues_x[i] + QUEUE_WIDTH, lane, x, lane)
        for lane in lanes.values()
        for i, x in enumerate(queues_x[1:])
    ]
    for i in range(drawn):
        y = TOP + (i + 0.5) * ROW_HEIGHT + (ROW_HEIGHT / 2 if drawn == 1 else 0)
        way = experiment.flows[i].direction
        ends_x = _crossed(queues_x, i)
        parts += _flow(_texts(labels[i], way), labels[i], colours(labels)[i], y, ends_x, lanes[way])
    parts += [_queue(x, lane, way) for way, lane in lanes.items() for x in queues_x]
    parts += _legend(experiment, height, drawn)
    title = f"<title>{escape(experiment.topology)}</title>"
    return (
        f'<svg role="img" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'xmlns="http://www.w3.org/2000/svg">{title}{"".join(parts)}</svg>'
    )


def sparkline_svg(values: Sequence[float], colour: str, top: float) -> str:
    """A line of 160 × 26 pixels from 0 to ``top``; NaN leaves a gap."""
    width, height = 160.0, 26.0
    step = width / max(len(values) - 1, 1)
    path, pen = [], "M"
    for i, value in enumerate(values):
        if not math.isfinite(value):
            pen = "M"
            continue
        y = height - 1 - (height - 2) * min(value / top, 1.0) if top > 0 else height - 1
        path.append(f"{pen}{i * step:.1f} {y:.1f}")
        pen = "L"
    return (
        f'<svg width="{width:.0f}" height="{height:.0f}" xmlns="http://www.w3.org/2000/svg">'
        f'<path d="{" ".join(path)}" fill="none" stroke="{escape(colour)}" stroke-width="1.2"/>'
        "</svg>"
    )


def _crossed(queues_x: list[float], flow: int) -> tuple[float, float]:
    """First and last queue on a flow's path: in a parking lot the first flow crosses both."""
    if flow == 0 or len(queues_x) == 1:
        return queues_x[0], queues_x[-1]
    only_x = queues_x[(flow + 1) % 2]
    return only_x, only_x


def _texts(label: str, direction: str) -> tuple[str, str]:
    """Texts of the boxes on the left and on the right."""
    short = label if len(label) <= MAX_LETTERS else label[: MAX_LETTERS - 1] + "…"
    return ("receiver", short) if direction == "reverse" else (short, "receiver")


def _flow(
    texts: tuple[str, str],
    label: str,
    colour: str,
    y: float,
    ends_x: tuple[float, float],
    lane: float,
) -> list[str]:
    boxes = [
        f'<g><title>{escape(label)}</title><rect class="node" x="{x}" y="{y - BOX_HEIGHT / 2}" '
        f'width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5"/>'
        f'<circle cx="{x + 12}" cy="{y}" r="4" fill="{colour}"/>'
        f'<text x="{x + 22}" y="{y + 4}">{escape(text)}</text></g>'
        for x, text in zip((LEFT_X, RIGHT_X), texts, strict=True)
    ]
    left = _wire(LEFT_X + BOX_WIDTH, y, ends_x[0], lane, colour)
    right = _wire(ends_x[1] + QUEUE_WIDTH, lane, RIGHT_X, y, colour)
    return [left, right, *boxes]


def _wire(from_x: float, from_y: float, to_x: float, to_y: float, colour: str = "") -> str:
    style = f' style="stroke:{colour}"' if colour else ""
    # Bend at the end of the queue, so that a wire does not run through another queue.
    leaves_queue = from_x > LEFT_X + BOX_WIDTH
    begin_x = from_x if leaves_queue else max(from_x, to_x - BEND)
    end_x = min(to_x, from_x + BEND) if leaves_queue else to_x
    middle_x = (begin_x + end_x) / 2
    return (
        f'<path class="wire"{style} d="M{from_x} {from_y} L{begin_x} {from_y} '
        f'C{middle_x} {from_y} {middle_x} {to_y} {end_x} {to_y} L{to_x} {to_y}"/>'
    )


def _queue(x: float, middle: float, direction: str) -> str:
    """Drawing of a buffer, open where packets enter, with four packets at its head."""
    top, bottom = middle - QUEUE_HEIGHT / 2, middle + QUEUE_HEIGHT / 2
    right = x + QUEUE_WIDTH
    packets = "".join(
        f'<rect class="packet" x="{right - 14 - 13 * i}" y="{top + 5}" width="9" '
        f'height="{QUEUE_HEIGHT - 10}" rx="1.5"/>'
        for i in range(4)
    )
    walls = f"M{x} {top} L{right} {top} L{right} {bottom} L{x} {bottom}"
    drawn = f'<path class="queue" d="{walls}"/>{packets}'
    if direction == "reverse":
        return f'<g transform="matrix(-1 0 0 1 {x + right} 0)">{drawn}</g>'
    return drawn


def _legend(experiment: Experiment, height: float, drawn: int) -> list[str]:
    link = experiment.bottleneck
    path = " · ".join([link.qdisc, *link_words(link), *path_words(link)])
    more = len(experiment.flows) - drawn
    return [
        f'<text x="{WIDTH / 2}" y="16" text-anchor="middle">{escape(path)}</text>',
        f'<text class="quiet" x="{WIDTH / 2}" y="33" text-anchor="middle">'
        f"{escape('buffer ' + buffer_words(experiment))}</text>",
        f'<text class="quiet" x="{LEFT_X}" y="{height - 6}">and {more} more flows</text>'
        if more
        else "",
    ]
