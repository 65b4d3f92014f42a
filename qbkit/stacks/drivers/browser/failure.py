"""An upload that ended before its time."""

import json
import time


class ConnectionLost(Exception):
    """An upload broke, or its browser died: the flow ends there, and the run goes on.

    ``known`` is the report of the end (docs/howto/own-stack.md), which has the time of this
    exception. A page is told no more than that its upload broke; the browser's log may say why.
    """

    def __init__(self):
        super().__init__()
        self.known = {"time_ns": time.time_ns(), "by": "unknown"}

    def report(self, out):
        """Write what is known of the end."""
        with open(f"{out}/sender-end.json", "w") as file:
            json.dump(self.known, file)
