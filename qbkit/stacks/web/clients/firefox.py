"""Firefox as a web client: Gecko, with neqo for HTTP/3."""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.web.base import register_client
from qbkit.stacks.web.clients.browser import Browser


class Firefox(Browser):
    """The whole browser, whose driver speaks Marionette with it over the loopback.

    It takes no screenshots, so there is no Speed Index, and it reports no first paint.
    """

    name: ClassVar[str] = "firefox"
    source: ClassVar[str] = "Debian's package firefox-esr"
    package: ClassVar[str] = "firefox-esr"
    program: ClassVar[str] = "/usr/lib/firefox-esr/firefox-esr"
    script: ClassVar[str] = "firefox_main"
    code: ClassVar[str] = "web-browser-firefox"


register_client(Firefox())
