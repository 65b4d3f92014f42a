"""neqo, Mozilla's QUIC, as a sender, in the Firefox ESR that Debian packages.

Firefox's network stack runs without windows or pages (background-task mode) and uploads by fetch()
to quic-go's HTTP/3 server. Only Firefox's own preferences are changed.
"""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.chromium import BrowserStack
from qbkit.stacks.registry import register


class Neqo(BrowserStack):
    """Firefox; the preference network.http.http3.cc_algorithm chooses its controller."""

    name = "neqo"
    source = "Debian's package firefox-esr"
    browser = "firefox"
    # Most runs are identical, but on a busy machine two runs of NewReno once differed in some
    # packets (by 0.1 % of the goodput). The cause is not known yet.
    deterministic = False
    packages: ClassVar[dict[str, str]] = {"firefox-esr": "/usr/lib/firefox-esr/firefox-esr"}
    options: ClassVar[dict[str, str]] = {
        "qlog": "write a full qlog",
        "hystart": "true: leave slow start by HyStart++; Firefox leaves it by loss alone",
        "search": "true: leave slow start by SEARCH (draft-chung-ccwg-search)",
        "pmtud": "true: look for a path MTU above neqo's 1280 bytes",
    }

    def controllers(self) -> tuple[str, ...]:
        """Both of neqo's; CUBIC is the default."""
        return ("cubic", "newreno")


register(Neqo())
