"""The telemetry of a flow: ``sender.csv`` and ``receiver.csv``."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from qbkit.cca.own.mistakes import TAKEN, taken
from qbkit.errors import RunFailed

STATES = (
    "slow_start",
    "congestion_avoidance",
    "recovery",
    "application_limited",
    "startup",
    "drain",
    "probe_bw",
    "probe_rtt",
)
"""Congestion states; the dataset holds their index, -1 for an unknown one."""

COLUMNS = {  # name → (unit, meaning)
    "cwnd_bytes": ("B", "congestion window"),
    "bytes_in_flight": ("B", "bytes in flight"),
    "ssthresh_bytes": ("B", "slow start threshold"),
    "srtt_ms": ("ms", "smoothed RTT"),
    "latest_rtt_ms": ("ms", "latest RTT sample"),
    "min_rtt_ms": ("ms", "minimum RTT"),
    "pacing_rate_mbps": ("Mbit/s", "pacing rate"),
    "delivery_rate_mbps": ("Mbit/s", "delivery rate estimate"),
    "lost_packets": ("1", "packets declared lost so far"),
    "spurious_losses": ("1", "losses found spurious so far"),
    "retransmits": ("1", "packets sent again so far"),
}


MOST_LOGGED = 1000
"""Names that a controller may log; HDF5 ends between 2,000 and 5,000."""
WRAPPED = r"^(?:[\w.]+\(|<.+: )(.+)[)>]$"
"""How Python writes a number of a class of its own: ``np.float64(1.5)``, ``<Phase.UP: 1>``."""
TRUTHS = {"True": "1", "False": "0", "np.True_": "1", "np.False_": "0"}
UNITS = {
    "bytes_per_s": "B/s",
    "packets_per_s": "1/s",
    "mbps": "Mbit/s",
    "bytes": "B",
    "percent": "%",
    "us": "us",
    "ms": "ms",
    "s": "s",
    "bdp": "BDP",
}
"""Last words of a name → unit."""


def read_sender(folder: Path) -> pd.DataFrame:
    """A flow's ``sender.csv``, with a column for each name in ``controller.csv``, if that exists.

    Controllers in Python write ``controller.csv`` as a long table (``time_ns,name,value``) with the
    same times: see `qbkit.cca.Controller.log`. Raises RunFailed for a name there that qbkit uses
    itself, which would take the place of another column, and for more than `MOST_LOGGED` names.
    """
    table, path = read_table(folder / "sender.csv"), folder / "controller.csv"
    if not path.exists():
        return table
    whole = _whole_lines(path)
    if not whole:
        return table
    flow = int(folder.name) + 1 if folder.name.isdigit() else 1
    # Each sample has all names so far, so the last one has all.
    last_time = whole[whole.rstrip().rfind(b"\n") + 1 :].partition(b",")[0]
    if (names := whole.count(b"\n" + last_time + b",")) > MOST_LOGGED:
        raise RunFailed(
            f"the controller of flow {flow} logs {names} values; at most {MOST_LOGGED} are recorded"
        )
    kinds = {"time_ns": "int64", "name": "str"}
    logged = pd.read_csv(
        io.BytesIO(whole), on_bad_lines="skip", dtype=kinds, encoding_errors="replace"
    )
    if logged["value"].dtype.kind not in "iuf":  # true and false, or a row that cannot be read
        texts = logged["value"].astype("str").str.replace(WRAPPED, r"\1", regex=True)
        truths = texts.replace(TRUTHS)
        logged["value"] = pd.to_numeric(truths, errors="coerce")
    wide = logged.pivot_table(index="time_ns", columns="name", values="value", aggfunc="last")
    if words := [word for word in wide if word in TAKEN]:
        raise RunFailed(f"the controller of flow {flow} {taken(words[0])}")
    table = table.merge(wide, how="left", left_on="time_ns", right_index=True)
    table.attrs["logged"] = sorted(wide)
    return table


def meaning(name: str) -> tuple[str, str]:
    """Unit and meaning of any column."""
    return COLUMNS.get(name) or (unit_of(name) or "1", f"{name}, logged by the controller")


def unit_of(name: str) -> str:
    """The unit that the last words of a name say; "" for none."""
    return UNITS.get(_last_words(name), "")


def without_unit(name: str) -> str:
    """A name without the words that say its unit."""
    return name.removesuffix(f"_{_last_words(name)}")


def _last_words(name: str) -> str:
    return next((end for end in UNITS if name.endswith(f"_{end}")), "")


def columns_of(tables: Sequence[pd.DataFrame]) -> list[str]:
    """The numeric columns of the tables: those in `COLUMNS`, then those that controllers log.

    It ignores other columns of a driver.
    """
    logged = {name for table in tables for name in table.attrs.get("logged", ())}
    usual = [name for name in COLUMNS if any(name in table for table in tables)]
    return usual + sorted(logged - set(COLUMNS))


def states_of(tables: Sequence[pd.DataFrame]) -> list[str]:
    """`STATES`, then the other states that controllers in Python report."""
    seen = {state for t in tables if "logged" in t.attrs and "state" in t for state in t["state"]}
    return [*STATES, *sorted({s for s in seen if isinstance(s, str)} - set(STATES))]


def read_table(path: Path) -> pd.DataFrame:
    """A driver's CSV with a leading ``time_ns``, in order of time; empty if there is no such file.

    It drops an incomplete last line (the driver was killed), other rows that cannot be read, with a
    warning that counts them, and columns that are always empty.
    """
    whole = _whole_lines(path)
    if not whole:
        return pd.DataFrame({"time_ns": []})
    header = whole[: whole.index(b"\n")].decode(errors="replace").split(",")
    if "time_ns" not in header or len(set(header)) < len(header):
        warnings.warn(f"{path} has no header with time_ns and is not used", stacklevel=2)
        return pd.DataFrame({"time_ns": []})
    table = _parse(whole, header)
    damaged = whole.count(b"\n") - 1 - len(table)
    if damaged:
        warnings.warn(f"{damaged} rows of {path} cannot be read and are left out", stacklevel=2)
    empty = table.isna().all()
    table = table.drop(columns=[name for name in table if name != "time_ns" and empty[name]])
    if table["time_ns"].is_monotonic_increasing:
        return table
    return table.sort_values("time_ns", kind="stable", ignore_index=True)


def _parse(text: bytes, header: list[str]) -> pd.DataFrame:
    """The rows with a valid time; cells that are not numbers become NaN."""
    try:
        table = _read(text, header, "int64")
    except (ValueError, OverflowError):
        # Some times are damaged. Avoid floats, which resolve present times to 256 ns only.
        table = _read(text, header, "str")
        table = table[table["time_ns"].str.fullmatch(r"[0-8]?[0-9]{1,18}").fillna(False)]
        table = table.astype({"time_ns": "int64"})
    for name, dtype in table.dtypes.items():
        if name not in ("state", "time_ns") and dtype.kind not in "iuf":
            table[name] = pd.to_numeric(table[name], errors="coerce")
    return table


def _whole_lines(path: Path) -> bytes:
    """A file without its last line, if the driver was killed while it wrote that, or never wrote.

    Bytes, as a text would take several times their memory.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return b""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text if text.endswith(b"\n") else text[: text.rfind(b"\n") + 1]


def _read(text: bytes, header: list[str], time_dtype: str) -> pd.DataFrame:
    return pd.read_csv(
        io.BytesIO(text),
        header=0,
        names=header,
        index_col=False,
        on_bad_lines="skip",
        encoding_errors="replace",
        quoting=csv.QUOTE_NONE,
        dtype={"time_ns": time_dtype, "state": "str"},
    )
