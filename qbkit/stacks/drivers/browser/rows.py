"""Rows of sender.csv."""

import os

ROW_NS = 10_000_000
"""One row about every 10 ms."""


class Rows:
    """Writes rows of some columns, at most one per ``ROW_NS``."""

    def __init__(self, out, columns):
        self.columns, self.next_ns = columns, 0
        self.file = open(os.path.join(out, "sender.csv"), "w", buffering=1 << 20)  # noqa: SIM115
        self.file.write(",".join(["time_ns", *columns]) + "\n")

    def sample(self, time_ns, values):
        """Write a row if the last one is old enough; CLOCK_REALTIME. None is an empty cell."""
        if time_ns >= self.next_ns:
            self.next_ns = time_ns + ROW_NS
            cells = [time_ns, *(values.get(name) for name in self.columns)]
            self.file.write(",".join("" if cell is None else str(cell) for cell in cells) + "\n")

    def close(self):
        """Write out and close."""
        self.file.close()
