"""What a stack tells of itself: ``sender.csv`` and ``receiver.csv`` of a flow."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import pandas as pd

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

COLUMNS = {  # name → (unit, what it is)
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


def read_table(path: Path) -> pd.DataFrame:
    """A driver's CSV with a leading ``time_ns``, in order of time; empty if there is no such file.

    A last line without its end (the driver was killed) is dropped; other rows that cannot be read
    are left out with a warning that counts them.
    """
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return pd.DataFrame({"time_ns": []})
    whole = text[: text.rfind("\n") + 1]
    if not whole:
        return pd.DataFrame({"time_ns": []})
    table = pd.read_csv(io.StringIO(whole), on_bad_lines="skip", low_memory=False)
    for name in table.columns.difference(["state"]):
        if table[name].dtype == object:
            table[name] = pd.to_numeric(table[name], errors="coerce")
    if "time_ns" not in table:
        warnings.warn(f"{path} has no column time_ns and is not used", stacklevel=2)
        return pd.DataFrame({"time_ns": []})
    good = table[table["time_ns"].notna()].astype({"time_ns": "int64"})
    damaged = whole.count("\n") - 1 - len(good)
    if damaged:
        warnings.warn(f"{damaged} rows of {path} cannot be read and are left out", stacklevel=2)
    return good.sort_values("time_ns", kind="stable", ignore_index=True)
