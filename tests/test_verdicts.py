"""The atlas' verdicts in words, the places of faults, and legible tiles."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from synthetic import synthetic_run

from qbkit.atlas.differences import Difference
from qbkit.atlas.standing import source_links
from qbkit.atlas.tiles import SHARE, VIRIDIS, tile_style
from qbkit.store.faults import Fault, first_clause
from qbkit.studies.conformance import Study
from qbkit.traces.run.early_end import EARLY_END


@pytest.mark.parametrize(
    ("mbps", "reach", "conformance", "kind", "words"),
    [
        (2.3, 0.5, 0.2, "more", "takes 2.3 Mbit/s more than the kernel's"),
        (-5.0, 0.3, 0.1, "less", "takes 5.0 Mbit/s less than the kernel's"),
        (1.5, 1.8, 0.8, "open", "takes 1.5 Mbit/s more, ± 1.8"),
        (-0.8, 0.5, 0.8, "open", "takes 0.8 Mbit/s less, ± 0.5"),
        (-0.2, 0.5, 0.75, "like", "takes as much as the kernel's"),
        (0.3, 0.5, 0.6, "other", "takes as much as the kernel's"),
        (0.3, math.nan, 0.8, "open", "takes 0.3 Mbit/s more, with one trial"),
        (5.0, math.nan, 0.1, "open", "takes 5.0 Mbit/s more, with one trial"),
    ],
)
def test_a_difference_in_words(mbps, reach, conformance, kind, words):
    found = Difference(mbps, reach, 10.0, conformance, 0.8)
    assert (found.kind, str(found)) == (kind, words)


@pytest.mark.parametrize(
    ("sentence", "clause"),
    [
        ("It does not pace: the unit is wrong.", "It does not pace"),
        ("It counts twice (always).", "It counts twice"),
        ("It is 0.5 of RFC 9438, 4.3.", "It is 0.5 of RFC 9438, 4.3"),
    ],
)
def test_the_first_clause_of_a_fault(sentence, clause):
    assert first_clause(sentence) == clause


def test_each_line_of_a_fault_has_its_address():
    fault = Fault("a:cubic", "1", "a.rs:5, 6, b.rs:7", "It does.", "Seen.")
    assert source_links(fault._replace(url="https://x/a#5 https://x/a#6 https://x/b#7")) == [
        ("a.rs:5", "https://x/a#5"),
        ("6", "https://x/a#6"),
        ("b.rs:7", "https://x/b#7"),
    ]
    assert source_links(fault._replace(source="a.rs:5, 6")) == [("a.rs:5", ""), ("6", "")]


@pytest.mark.parametrize("scale", [VIRIDIS, SHARE])
def test_the_number_of_every_tile_is_legible(scale):
    for value in np.linspace(0, 1, 101):
        ground, ink = (
            luminance(each) for each in re.findall("#([0-9a-f]+)", tile_style(value, scale))
        )
        assert (max(ground, ink) + 0.05) / (min(ground, ink) + 0.05) >= 4.5, value  # WCAG 2, AA
    assert tile_style(math.nan) == ""
    assert "#440154" in tile_style(0.0)
    assert "#fde725" in tile_style(1.2)


def luminance(colour: str) -> float:
    """Relative luminance of ``rgb`` or ``rrggbb``."""
    size = len(colour) // 3
    parts = [int(colour[i : i + size] * (3 - size), 16) / 255 for i in range(0, 3 * size, size)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot((0.2126, 0.7152, 0.0722), linear))


def test_a_fault_that_the_reference_has_too_is_no_reason():
    def faults(test: str, reference: str) -> list[Fault]:
        ended = synthetic_run(flows=[test]).assign({EARLY_END: ("flow", [3.5])})
        return Study(test, reference, [ended], []).faults

    assert faults("quinn:cubic", "tcp:cubic")
    assert faults("quinn:cubic?initial_window_packets=40", "quinn:cubic") == []
    assert faults("quinn:cubic", "quinn@0.10.6:cubic?initial_window_packets=40") == []
    assert faults("quinn:cubic", "noq@1.0.0:bbr3")


def test_a_fault_that_ends_connections_is_no_reason_where_none_ended():
    """quinn's CUBIC was blamed for closing its connection in every study of it."""

    def sources(test: str, ended_s: float) -> list[str]:
        run = synthetic_run(flows=[test, "tcp:cubic"])
        trials = [run, run.assign({EARLY_END: ("flow", [ended_s, 9.0])})]
        return [fault.source for fault in Study(test, "tcp:cubic", trials, []).faults]

    assert sources("quinn:cubic", math.nan) == []
    assert sources("quinn:cubic", 3.5) == ["assembler.rs:219, 361"]
    assert sources("quinn:bbr", math.nan) == ["bw_estimation.rs:56, 65"]
