"""Numbers in the sentences of the documentation are those of the data or the table they quote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import golden_runs
import pandas as pd
import pytest
from markdown_tables import rows_of

import qbkit as qb
from qbkit.atlas.claims.family import at
from qbkit.studies.explorer import Setting, nearest

ROOT = Path(__file__).parents[1]
MOVED = 0.04
"""The sentence about physical time names the flows whose share moves by more."""
MEMORY = ("guest", "dataset")
BEFORE = 0.85
"""Standard deviation of 20 earlier trials of CUBIC, in Mbit/s."""
OUTCOMES = ("right", "near", "undecided", "wrong")
LENGTHS = ("conformance", "conformance_120_s")
"""Folders of the same sweep in trials of 60 and of 120 s."""


def physical_time() -> pd.DataFrame:
    """The flows at 1 BDP: shares in both times, of each the cell in which they differ most."""
    cells = pd.read_csv(ROOT / "data/checks/physical-time.csv").query("buffer_bdp == 1")
    cells = cells.assign(moved=(cells.physical_share - cells.virtual_share).abs())
    return cells.sort_values("moved").groupby("flow").last()


def within() -> tuple[float, ...]:
    flows = physical_time()
    return int((flows.moved < MOVED).sum()), len(flows)


def both_shares(flow: str) -> Callable[[], tuple[float, ...]]:
    return lambda: tuple(physical_time().loc[flow, ["virtual_share", "physical_share"]])


def longer_trials() -> tuple[float, ...]:
    """The noise floor of CUBIC at 50 ms in trials of 60 and of 120 s, with 3 and with 5 BDP."""
    cubes = [qb.load_sweep(ROOT / f"data/{name}/cubic.yaml") for name in LENGTHS]
    maps = [qb.metrics.conformance_map(cube, "tcp:cubic").noise_floor for cube in cubes]
    return tuple(float(at(floor, rtt_ms=50, buffer_bdp=bdp)[0]) for bdp in (3, 5) for floor in maps)


def cells_of(file: str, start: str) -> list[str]:
    """The cells of the last row of a file that begins so."""
    lines = (ROOT / file).read_text().splitlines()
    row = [line for line in lines if line.startswith(start)][-1]
    return [cell.strip() for cell in row.strip("| ").split("|")]


def longest_trials() -> tuple[float, ...]:
    row = cells_of("benchmarks/tables/trial_length.md", "| 50 ms")
    return float(row[1]), float(row[7]), float(row[3])


def draws(what: str, shift: str = "0 %") -> tuple[float, ...]:
    """With five and with ten trials a side."""
    rows = {row["shift of the throughput"]: row for row in rows_of("verdict_throughput")}
    return tuple(float(rows[shift][f"{side}: {what}"]) for side in ("5 + 5", "10 + 10"))


def conforming_draws() -> tuple[float, ...]:
    return draws("conforms")


def fastest_tcp() -> tuple[float, ...]:
    """TCP at 10 Gbit/s and 100 ms: processor seconds, and the most memory in GB."""
    rows = [r for r in rows_of("high_rates") if r["Mbit/s"] == "10000" and r["RTT, ms"] == "100"]
    rows = [row for row in rows if row["flow"].startswith("tcp:")]
    costs = sorted(float(row["per virtual s"]) for row in rows)
    memory = (max(float(row[f"{what}, MB"]) for row in rows) / 1e3 for what in MEMORY)
    return costs[0], costs[-1], *memory


def quinn_at_10_gbps() -> tuple[float, ...]:
    rows = [r for r in rows_of("high_rates") if r["flow"] == "quinn:cubic"]
    fast = [row for row in rows if row["Mbit/s"] == "10000"]
    return tuple(sorted(float(row["Mbit/s in the last fifth"]) / 1e3 for row in fast))


def cheaper() -> tuple[float, ...]:
    rows = [row for row in rows_of("speed_stacks") if row["before"]]
    ratios = [float(row["before"]) / float(row["after"]) for row in rows]
    return min(ratios), max(ratios)


def wrong_estimates() -> tuple[float, ...]:
    errors = [row["error"] for row in rows_of("inference")]
    return (sum(abs(float(text[:-1])) > 6.5 for text in errors if text.endswith("%")), 6.5)


def scatter_of_cubic() -> tuple[float, ...]:
    (row,) = [r for r in rows_of("noise_floor_spread") if r["mean of the trials"] == "Mbit/s"]
    now = float(row["tcp:cubic, random starts"].split(" ± ")[1])
    return now, BEFORE, (now / BEFORE) ** 2


def memory_of_logs() -> tuple[float, ...]:
    row = rows_of("qlog")[-1]
    return tuple(float(row[what].removesuffix(" MB")) for what in ("peak memory", "kept"))


def bbr3_of_tquic() -> tuple[float, ...]:
    (row,) = [row for row in rows_of("stacks") if row["implementation"] == "tquic:bbr3"]
    return (float(row["Mbit/s from 2 s on"]),)


def small_object() -> tuple[float, ...]:
    """How much sooner 100 KB come over HTTP/3 without loss, in percent; the second with delay."""
    loads = qb.load_tables(ROOT / "data/web_objects")["loads"]
    loads = loads[(loads.client == "go") & (loads.tcp_initial_window_packets == 10)]
    loads = loads.query("server == 'envoy:cubic' and object_bytes == 100_000 and loss_percent == 0")
    s = loads.groupby(["rtt_ms", "protocol"]).time_to_last_byte_s.median().unstack()
    sooner = 100 * (1 - s.h3 / s.h2)
    assert round(sooner[65]) == round(sooner[115])
    return sooner[15], sooner[65]


def small_page() -> tuple[float, ...]:
    """How much sooner the first paint of the small page comes over HTTP/3, in percent."""
    loads = qb.load_tables(ROOT / "data/web_pages/tables")["loads"]
    loads = loads[(loads.client == "headless-shell") & (loads.buffer_packets == 50)]
    cells = qb.metrics.page_differences(loads).query("page == 'small' and loss == 'none'")
    paints = cells[cells["time"] == "first_contentful_paint_s"].set_index("rtt_ms")
    return tuple(-paints.difference_percent[[15, 115]])


def explored() -> tuple[float, ...]:
    """What quinn's BBR takes more than the kernel's, in the setting of the explorer's picture."""
    cube = qb.load_sweep(ROOT / "data/conformance/bbr.yaml")
    cell = nearest([cube], Setting("quinn:bbr", rtt_ms=50, buffer_bdp=3)).cell
    return (float(cell.mean_throughput_difference_mbps),)


def differing_everywhere() -> tuple[float, ...]:
    """How many implementations differ from the kernel's over all settings; all, or this fails."""
    cubes = {
        n: qb.load_sweep(ROOT / f"data/conformance/{n}.yaml") for n in ("bbr", "cubic", "reno")
    }
    maps = [qb.metrics.conformance_map(cube, f"tcp:{n}") for n, cube in cubes.items()]
    differs = [found.q_value_over_settings.dropna("flows.0") <= 0.05 for found in maps]
    assert all(bool(each.all()) for each in differs)
    return (sum(each.size for each in differs),)


def shares_of(sweep: str, flow: str, **where: object) -> tuple[float, ...]:
    """The least and the most of a sender's mean shares over the seeds, in percent."""
    cube = qb.load_sweep(ROOT / f"data/l4s/{sweep}.yaml")
    mine = {"flows.0": flow} | {f"bottleneck.{name}": value for name, value in where.items()}
    share = 100 * qb.metrics.shares(cube).isel(flow=0).sel(mine).mean("seed")
    return float(share.min()), float(share.max())


def outcomes(name: str, kinds: str = "") -> tuple[int, ...]:
    """Changed senders of a set, of the kinds that end so, by the outcome of today's rules."""
    rows = [row for row in rows_of(f"{name}_by_kind") if row["kind"].endswith(kinds)]
    return tuple(sum(int(row[outcome]) for row in rows) for outcome in OUTCOMES)


def sets_of_causes() -> list[list[str]]:
    """The rows of the summary of all sets in the README of the benchmarks."""
    lines = (ROOT / "benchmarks/README.md").read_text().splitlines()
    return [line.strip("| ").split(" | ") for line in lines if "_by_kind.md)" in line]


def first_looks(cells: list[str]) -> tuple[int, ...]:
    """Right, near, undecided and wrong at the first look, of a row of the summary."""
    return tuple(int(cell.split()[0]) for cell in cells[2:6])


def all_sets() -> tuple[int, ...]:
    names = [re.findall(r"tables/(\w+)_by_kind", cells[0])[0] for cells in sets_of_causes()]
    return tuple(map(sum, zip(*map(outcomes, names), strict=True)))


def identified() -> tuple[float, ...]:
    """Connections, implementations, and how many were alone and beside another flow."""
    answers = pd.read_csv(ROOT / "data/identify/answers.csv")
    beside = int(answers.flows.str.contains(" ").sum())
    return len(answers), answers.implementation.nunique(), len(answers) - beside, beside


NUMBER = r"(\d+(?:\.\d+)?)"
PHYSICAL = rf"{NUMBER} of {NUMBER} (?:implementations|flows|implement)"
QUOTED = [
    ("docs/concepts/virtual-time.md", PHYSICAL, within),
    ("notebooks/14_is_it_the_stack.ipynb", PHYSICAL, within),
    ("notebooks/03_conformance_map.ipynb", PHYSICAL, within),
    (
        "notebooks/03_conformance_map.ipynb",
        rf"All {NUMBER} implementations differ from the kernel's in some network",
        differing_everywhere,
    ),
    (
        "notebooks/10_h2_vs_h3_objects.ipynb",
        rf"100 KB by {NUMBER} %, and by {NUMBER} % at 65 or 115 ms",
        small_object,
    ),
    (
        "notebooks/11_pages.ipynb",
        rf"first paint comes {NUMBER} % sooner at 15 ms, and {NUMBER} % at 115 ms",
        small_page,
    ),
    ("notebooks/13_parameter_explorer.ipynb", rf"takes {NUMBER} Mbit/s more", explored),
    (
        "notebooks/17_l4s.ipynb",
        rf"{NUMBER} % of 40 Mbit/s at 5 ms, {NUMBER} % at 80 ms",
        lambda: shares_of("queues", "picoquic:prague", qdisc="dualpi2", rate_mbps=40)[::-1],
    ),
    *(
        ("notebooks/17_l4s.ipynb", sentence, partial(shares_of, *what, **where))
        for sentence, what, where in (
            (
                rf"queue that marks it takes {NUMBER} to {NUMBER} % from CUBIC",
                ("classic", "picoquic:prague"),
                {},
            ),
            (rf"DCTCP {NUMBER} to {NUMBER} %", ("classic", "tcp:dctcp"), {}),
            (rf"control, at {NUMBER} to {NUMBER} %", ("classic", "tcp:cubic?ecn=true"), {}),
            (rf"of L4S gets {NUMBER} to {NUMBER} %", ("any_ect", "tcp:cubic?ecn=true"), {}),
            (rf"right one, gets {NUMBER} to {NUMBER} %", ("any_ect", "tcp:dctcp"), {}),
            (rf"BBR takes {NUMBER} to {NUMBER} %", ("queues", "tcp:bbr"), {"qdisc": "dualpi2"}),
        )
    ),
    (
        "docs/concepts/virtual-time.md",
        rf"quinn's BBR \({NUMBER} in virtual time and {NUMBER} on the machine's clock;",
        both_shares("quinn:bbr"),
    ),
    (
        "docs/concepts/virtual-time.md",
        rf"aioquic's Reno \({NUMBER} and {NUMBER}, not explained\)",
        both_shares("aioquic:reno"),
    ),
    (
        "docs/concepts/virtual-time.md",
        rf"share of the link is {NUMBER} in virtual time and {NUMBER} on the machine's clock \(5",
        both_shares("quiche:cubic"),
    ),
    (
        "docs/concepts/noise-floor.md",
        rf"noise floor of the kernel's CUBIC rises from {NUMBER} in 60 s to {NUMBER} in 120 s with "
        rf"3 BDP, and from {NUMBER} to {NUMBER} with 5 BDP",
        longer_trials,
    ),
    (
        "benchmarks/README.md",
        rf"at 50 ms the noise floor of {NUMBER} points is {NUMBER} for BBR and {NUMBER} for CUBIC",
        longest_trials,
    ),
    (
        "docs/concepts/noise-floor.md",
        rf"With five or ten seeds per side it conforms in only {NUMBER} % of the draws",
        lambda: (100 * max(*conforming_draws()),),
    ),
    (
        "data/findings.md.jinja",
        rf"conforms to itself in {NUMBER} of the draws with five trials a side, and in {NUMBER}",
        conforming_draws,
    ),
    (
        "docs/concepts/noise-floor.md",
        rf"by 18 % in {NUMBER} % of the draws",
        lambda: (100 * draws("detected", "18 %")[1],),
    ),
    (
        "docs/concepts/noise-floor.md",
        rf"by 25 % in {NUMBER} %\.",
        lambda: (100 * draws("detected", "25 %")[0],),
    ),
    (
        "benchmarks/README.md",
        rf"conform to itself in {NUMBER} of the draws at 5 \+ 5 and in {NUMBER} at 10 \+ 10",
        conforming_draws,
    ),
    *(
        ("benchmarks/README.md", sentence, computed)
        for sentence, computed in (
            (rf"exactly the margin {NUMBER} and {NUMBER}", lambda: draws("conforms", "10 %")),
            (rf"finds a difference in {NUMBER} of the draws", lambda: draws("detected")[:1]),
            (rf"calls {NUMBER} and {NUMBER} % detectable", lambda: draws("detectable, %")),
            (rf"of 25 % in {NUMBER} of the draws", lambda: draws("detected", "25 %")[:1]),
            (rf"of 18 % in {NUMBER} at 10", lambda: draws("detected", "18 %")[1:]),
            (
                rf"costs {NUMBER} to {NUMBER} processor seconds per virtual second, slow start "
                rf"included, and at most {NUMBER} GB of memory for the guest, then {NUMBER} GB",
                fastest_tcp,
            ),
            (rf"{NUMBER} to {NUMBER} were measured", quinn_at_10_gbps),
            (rf"A run took {NUMBER} to {NUMBER} times as much", cheaper),
            (rf"all but {NUMBER} numbers are within {NUMBER} %", wrong_estimates),
            (rf"\({NUMBER}² / {NUMBER}² = {NUMBER}, in one", scatter_of_cubic),
            (rf"Of its {NUMBER} MB, {NUMBER} MB", memory_of_logs),
            (rf"BBRv3 stays at {NUMBER} Mbit/s", bbr3_of_tquic),
            (rf"{NUMBER} of the 57 are right now", lambda: outcomes("causes", "later")[:1]),
            (rf"all sets: {NUMBER} of {NUMBER} right", lambda: (all_sets()[0], sum(all_sets()))),
        )
    ),
    (
        "docs/concepts/depends.md",
        rf"are {NUMBER} short experiments",
        lambda: (len(golden_runs.golden_runs()),),
    ),
    (
        "docs/concepts/virtual-time.md",
        rf"of the {NUMBER} golden runs",
        lambda: (len(golden_runs.golden_runs()),),
    ),
    (
        "docs/howto/identify.md",
        rf"has {NUMBER} connections of {NUMBER} implementations: {NUMBER} alone .* and {NUMBER} "
        r"beside another flow",
        identified,
    ),
]


def test_the_summary_of_causes_is_that_of_its_tables():
    sets = sets_of_causes()
    assert len(sets) == 14
    for cells in sets:
        (name,) = re.findall(r"tables/(\w+)_by_kind", cells[0])
        now = outcomes(name)
        said = (cells[1], cells[7].split()[0], cells[8])
        assert tuple(map(int, said)) == (sum(now), now[0], now[3]), name
        judged = re.findall(r"of the (\d+)", cells[2])  # the first set was judged in part
        assert sum(first_looks(cells)) == int(judged[0] if judged else cells[1]), name
        for part, whole in ((cells[2], first_looks(cells)), (cells[7], now)):
            percent = int(re.findall(r"\((\d+) %\)", part)[0])
            assert percent == round(100 * whole[0] / sum(whole)), name


def test_the_guide_sums_up_the_first_looks_at_causes():
    sets = sets_of_causes()
    expected = [
        tuple(map(sum, zip(*map(first_looks, part), strict=True)))
        for part in (sets[10:], sets[7:10], sets[3:7])
    ]
    rows = [
        [int(re.findall(r"\d+", cell)[0]) for cell in line.strip("| ").split(" | ")]
        for line in (ROOT / "docs/howto/explain.md").read_text().splitlines()
        if re.match(r"\| (all )?\d+, ", line)
    ]
    assert [tuple(row[1:]) for row in rows] == [*expected, all_sets()]
    assert all(row[0] == sum(row[1:]) for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "sentence", "computed"), QUOTED)
def test_a_sentence_quotes_its_source(page, sentence, computed):
    text = (ROOT / page).read_text()
    if page.endswith(".ipynb"):
        text = " ".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    text = re.sub(r"\s+", " ", text)
    found = re.search(sentence, text)
    assert found, f"{page} has no such sentence any more"
    values = computed()
    decimals = [len(number.partition(".")[2]) for number in found.groups()]
    expected = tuple(f"{v:.{n}f}" for v, n in zip(values, decimals, strict=True))
    assert found.groups() == expected
