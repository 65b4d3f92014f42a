"""Shares of a link over its buffer and over the number of flows, and models drawn over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import pandas as pd

from qbkit.atlas.pages import Figure, drawn
from qbkit.metrics.theory import bbr_share, cubic_share, equal_share
from qbkit.plots.theory import Model, share_by_buffer_chart, share_by_flows_chart
from qbkit.spec.network_words import FORMS, network_text

TABLE = "shares/shares.csv"
EQUAL = "equal shares"
COMMAND = "python data/shares/make.py"


@dataclass(frozen=True)
class Shares:
    """The table of shares: a row for each run."""

    table: pd.DataFrame

    def over(self, what: str) -> pd.DataFrame:
        """The rows over the ``buffer``, or over the number of ``flows``."""
        rows = self.table[self.table["over"] == what]
        return rows.rename(columns={"sender": "label", "others": "flows"})

    def network(self, what: str) -> str:
        """The link and the buffer that all of these rows have in common."""
        rows = self.over(what)
        return network_text(rows.iloc[0], [name for name in FORMS if rows[name].nunique() == 1])

    def by_buffer(self) -> alt.LayerChart:
        """One flow beside one other."""
        rows, (mbps, rtt_ms) = self.over("buffer"), self._link("buffer")
        models: dict[str, Model] = {
            "tcp:bbr": lambda bdp: bbr_share(bdp, rate_mbps=mbps, rtt_ms=rtt_ms),
            "tcp:cubic": lambda bdp: cubic_share(bdp, rate_mbps=mbps, rtt_ms=rtt_ms),
        }
        title = f"One flow beside another ({self.network('buffer')})"
        return share_by_buffer_chart(rows, models=_of_labels(models, rows), title=title)

    def by_flows(self) -> alt.LayerChart:
        """One flow beside many others."""
        rows, (mbps, rtt_ms) = self.over("flows"), self._link("flows")
        depth = float(rows["buffer_bdp"].iloc[0])
        models: dict[str, Model] = {
            "tcp:bbr": lambda others: bbr_share(depth, rate_mbps=mbps, rtt_ms=rtt_ms),
            "tcp:cubic": lambda others: cubic_share(
                depth, rate_mbps=mbps, rtt_ms=rtt_ms, reno_flows=others
            ),
            EQUAL: lambda others: equal_share(1, others),
        }
        title = f"One flow beside many others ({self.network('flows')})"
        return share_by_flows_chart(rows, models=_of_labels(models, rows), title=title)

    def _link(self, what: str) -> tuple[float, float]:
        """Rate in Mbit/s and RTT in ms."""
        first = self.over(what).iloc[0]
        return float(first["rate_mbps"]), float(first["rtt_ms"])


def _of_labels(models: Mapping[str, Model], rows: pd.DataFrame) -> dict[str, Model]:
    """The models of what was measured, and that of equal shares."""
    return {name: model for name, model in models.items() if name in {*rows["label"], EQUAL}}


def share_figures(folder: Path) -> list[Figure]:
    """Both charts of a folder of published data; none if it has no table of shares."""
    table = folder / TABLE
    if not table.exists():
        return []
    shares = Shares(pd.read_csv(table))
    return [
        drawn(shares.by_buffer(), "Share of one flow over the buffer"),
        drawn(shares.by_flows(), "Share of one flow over the number of others"),
    ]
