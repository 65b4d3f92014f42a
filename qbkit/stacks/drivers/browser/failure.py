"""An upload that broke."""

import json
import time


class ConnectionLost(Exception):
    """An upload broke. Its page is told no more than that; the receiver reports the code."""

    def __init__(self, reason):
        super().__init__(reason)
        self.time_ns = time.time_ns()

    def report(self, out):
        """Write what is known of the connection's end."""
        known = {"time_ns": self.time_ns, "by": "unknown", "reason": str(self)}
        with open(f"{out}/sender-end.json", "w") as file:
            json.dump(known, file)
