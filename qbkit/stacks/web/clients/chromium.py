"""Chromium as a web client: the browser, and the headless shell that Debian builds from it.

Both have Chromium's network stack, Blink and V8. The shell lacks the browser's user interface and
services, so that a page costs it about half the processor time.
"""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.web.base import register_client
from qbkit.stacks.web.clients.browser import Browser


class Chromium(Browser):
    """The browser, whose driver speaks DevTools' protocol with it over a pipe."""

    name: ClassVar[str] = "chromium"
    source: ClassVar[str] = "Debian's package chromium"
    package: ClassVar[str] = "chromium"
    program: ClassVar[str] = "/usr/lib/chromium/chromium"
    keeps: ClassVar[tuple[str, ...]] = ("har", "netlog", "screenshots")


class HeadlessShell(Chromium):
    """The headless shell, the cheaper of the two."""

    name: ClassVar[str] = "headless-shell"
    source: ClassVar[str] = "Debian's package chromium-headless-shell"
    package: ClassVar[str] = "chromium-headless-shell"
    program: ClassVar[str] = "/usr/lib/chromium/chromium-headless-shell"


register_client(Chromium())
register_client(HeadlessShell())
