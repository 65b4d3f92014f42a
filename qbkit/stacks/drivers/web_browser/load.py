"""One page load over DevTools: its events, screenshots and paint times."""

import base64
import json
import time

from arguments import incomplete
from process import Died, Failed
from resources import Resources

VIEWPORT = {"width": 800, "height": 600, "deviceScaleFactor": 1, "mobile": False}
"""That of Yu and Benson (Puppeteer's default)."""
SCREENSHOT = {"format": "jpeg", "quality": 60, "maxWidth": 800, "maxHeight": 600}
ATTACH = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
QUIET_S = 0.5
"""The load is over when it has fired its event and nothing has come for so long."""
KEPT = {
    f"Network.{name}"
    for name in (
        "requestWillBeSent",
        "requestWillBeSentExtraInfo",
        "responseReceived",
        "responseReceivedExtraInfo",
        "resourceChangedPriority",
        "loadingFinished",
        "loadingFailed",
    )
} | {"Page.loadEventFired", "Page.domContentEventFired"}
OBSERVE = """
self.qbkitLargest = null;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) self.qbkitLargest = [entry.startTime, entry.url];
}).observe({type: "largest-contentful-paint", buffered: true});
"""
TIMES = """JSON.stringify({
  origin: performance.timeOrigin,
  load: performance.getEntriesByType("navigation")[0].loadEventStart,
  paint: Object.fromEntries(
    performance.getEntriesByType("paint").map((entry) => [entry.name, entry.startTime])),
  largest: self.qbkitLargest,
})"""
REFUSED = "net::ERR_CERT"


class PageLoad:
    """Collects what a browser says of one page, and writes it to a folder."""

    def __init__(self, browser_events, out):
        self.events, self.out, self.browser = browser_events, out, None
        self.resources, self.frames = Resources(), []
        self.loaded_s, self.last_s = None, time.monotonic()

    def listen(self, method, params):
        """Take one event."""
        if method == "Inspector.targetCrashed":
            words = "the browser's page crashed"
            raise Died(words, by="receiver-program", reason=words)
        if method in KEPT:
            self.events.write(json.dumps([method, params]) + "\n")
        if method == "Target.attachedToTarget":
            self.follow(params["sessionId"])
        elif method == "Page.screencastFrame":
            self.frame(params)
        elif method == "Page.loadEventFired":
            self.loaded_s = params["timestamp"]
        elif method.startswith("Network."):
            self.resources.take(method.removeprefix("Network."), params)
        else:
            return
        self.last_s = time.monotonic()

    def follow(self, session):
        """Hear of the requests of a frame or worker with a process of its own, before it starts."""
        self.browser.send("Network.enable", session)
        self.browser.send("Target.setAutoAttach", session, **ATTACH)
        self.browser.send("Runtime.runIfWaitingForDebugger", session)

    def frame(self, params):
        """Keep a screenshot; the browser sends the next one when this one is acknowledged."""
        self.browser.send("Page.screencastFrameAck", sessionId=params["sessionId"])
        with open(f"{self.out}/frame-{len(self.frames):04d}.jpg", "wb") as file:
            file.write(base64.b64decode(params["data"]))
        self.frames.append(params["metadata"]["timestamp"])

    def run(self, browser, url, deadline):
        """Load the page and wait until it is complete and at rest; its times as the page has them.

        Raises Failed at the deadline, or when the page cannot be loaded.
        """
        self.browser = browser
        browser.attach(deadline)
        # Each must be answered before the navigation: the page's new process takes over what the
        # old one has confirmed.
        for domain in ("Page", "Network", "Inspector"):
            browser.ask(f"{domain}.enable", deadline)
        browser.ask("Target.setAutoAttach", deadline, **ATTACH)
        browser.ask("Emulation.setDeviceMetricsOverride", deadline, **VIEWPORT)
        browser.ask("Page.addScriptToEvaluateOnNewDocument", deadline, source=OBSERVE)
        browser.ask("Page.startScreencast", deadline, **SCREENSHOT)
        self.loaded_s = None  # of the empty page before
        error = browser.ask("Page.navigate", deadline, url=url).get("errorText")
        if error:
            what = "the browser refused the certificate of" if REFUSED in error else "cannot load"
            raise Failed(f"{what} {url}: {error}")
        self.wait(browser, url, deadline)
        answer = browser.ask("Runtime.evaluate", deadline, expression=TIMES)
        return json.loads(answer["result"]["value"])

    def wait(self, browser, url, deadline):
        """Wait until nothing more comes."""
        while True:
            complete = self.loaded_s is not None and not self.resources.pending
            until = min(deadline, self.last_s + QUIET_S) if complete else deadline
            if time.monotonic() >= until:
                break
            browser.take(until)
        if not complete:
            raise incomplete(url, browser.limit_s, self.resources.waited_for())
