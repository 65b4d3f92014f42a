"""Packets of a capture, collected part by part."""

from __future__ import annotations

import numpy as np

from qbkit.traces.arrays import UintArray
from qbkit.traces.run.frames import Columns, Packets, Ways


class Collector:
    """Joins the parts of a capture with at most ``most`` packets, and stores each way once.

    Its columns have their full length from the start. What is never written takes no memory.
    """

    def __init__(self, most: int) -> None:
        self._columns = Columns(*(np.empty(most, kind) for kind in ("i8", "u4", "u4", "u8", "u1")))
        self._count = 0
        self._ways = [Ways(*(np.empty(0, np.uint64) for _ in Ways._fields))]
        self._known, self._index = np.empty((2, 0), np.uint64)

    def __len__(self) -> int:
        return self._count

    def add(self, part: Packets) -> None:
        """Append packets, in which the same way may occur many times."""
        number = part.ways.number()[part.way]
        at = np.searchsorted(self._known, number)
        new = np.append(self._known, np.uint64(0))[at] != number
        if new.any():
            self._learn(number[new], part.ways, part.way[new])
            at = np.searchsorted(self._known, number)
        values = Columns(part.time_ns, part.frame_bytes, self._index[at], part.key, part.ecn)
        end = self._count + len(part)
        for name in Columns._fields:
            getattr(self._columns, name)[self._count : end] = getattr(values, name)
        self._count = end

    def packets(self) -> Packets:
        """All packets in the order of their time stamps; ends the collection."""
        for column in self._columns:
            column.resize(self._count, refcheck=False)
        ways = Ways(*map(np.concatenate, zip(*self._ways, strict=True)))
        packets = Packets(*self._columns, ways)
        if (packets.time_ns[1:] < packets.time_ns[:-1]).any():
            return packets.take(np.argsort(packets.time_ns, kind="stable"))
        return packets

    def _learn(self, number: UintArray, ways: Ways, way: UintArray) -> None:
        """Store ways that are not known yet, by their numbers."""
        fresh, first = np.unique(number, return_index=True)
        index = np.arange(len(fresh), dtype=np.uint64) + np.uint64(len(self._known))
        known, both = np.append(self._known, fresh), np.append(self._index, index)
        order = np.argsort(known)
        self._known, self._index = known[order], both[order]
        self._ways.append(Ways(*(ends[way[first]] for ends in ways)))
