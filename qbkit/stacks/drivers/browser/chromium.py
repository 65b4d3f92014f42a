"""Chromium: how to make it upload by QUIC alone."""

from netlog import NetLog
from page import NAME, body_bytes, page
from process import Failed
from reports import Reports

PROGRAM = "/usr/lib/chromium/chromium"
FLAGS = [
    *["--headless", "--no-sandbox", "--no-zygote", "--no-first-run"],
    *["--disable-gpu", "--in-process-gpu", "--disable-software-rasterizer"],
    *["--disable-background-networking", "--disable-component-update", "--disable-sync"],
    *["--disable-extensions", "--disable-default-apps", "--enable-quic"],
    # No second renderer: a process costs a guest half a second.
    "--disable-features=SpareRendererForSitePerProcess",
]
CONTROLLERS = {  # name → (QUICHE's connection options, its name in the net log)
    "cubic": ([], "CUBIC_BYTES"),
    "bbr": (["TBBR"], "BBR"),
    "bbr2": (["B2ON"], "BBRv2"),
    "reno": (["RENO"], "RENO_BYTES"),
}
INITIAL_WINDOWS = {"3": "IW03", "10": "IW10", "20": "IW20", "50": "IW50"}
NO_OTHERS = "MAP * ~NOTFOUND,EXCLUDE 127.0.0.1"
"""No look-ups of the browser vendor's own services."""
PART_BYTES = 1 << 22
# A Blob of one part repeated costs no memory. It is doubled, because each part of a Blob costs
# messages between processes.
BODY = """
let blob = new Blob([new Uint8Array(%(part)d)]);
const parts = [blob.slice(0, %(rest)d)];
for (let left = %(whole)d; left; left >>= 1, blob = new Blob([blob, blob]))
  if (left & 1) parts.unshift(blob);
upload(new Blob(parts));
"""


class Chromium:
    """One headless browser with its own profile."""

    def __init__(self, arguments, scratch):
        self.arguments, self.scratch = arguments, scratch
        self.log = f"{scratch}/net.json"
        self.tags, self.controller = arguments.choice(CONTROLLERS)

    def telemetry(self, outcomes):
        """Telemetry from the net log, which reports into ``outcomes`` that the upload ended."""
        return NetLog(self.log, self.arguments.out, self.controller, outcomes)

    def argv(self, outcomes):
        """The command; the page reports into ``outcomes``."""
        reports = Reports(outcomes)
        whole, rest = divmod(body_bytes(self.arguments), PART_BYTES)
        body = BODY % {"part": PART_BYTES, "whole": whole, "rest": rest}
        reports.html = page(self.arguments, reports.url, body)
        with open(f"{self.arguments.certificates}/browser-spki") as file:
            spki = file.read().strip()
        tags = ",".join([*self.tags, *option_tags(self.arguments.options)])
        return [
            PROGRAM,
            *FLAGS,
            f"--user-data-dir={self.scratch}/profile",
            f"--host-resolver-rules=MAP {NAME} {self.arguments.host},{NO_OTHERS}",
            f"--origin-to-force-quic-on={NAME}:{self.arguments.port}",
            f"--ignore-certificate-errors-spki-list={spki}",
            f"--log-net-log={self.log}",
            *([f"--quic-client-connection-options={tags}"] if tags else []),
            # A window without an address bar, which would be a page in a process of its own.
            f"--app={reports.url}",
        ]

    def outcome(self, status):
        """The outcome when the browser ends by itself."""
        return "ended", f"exit status {status}"

    def env(self):
        """Its home is the scratch folder; there is no message bus."""
        return {"HOME": self.scratch, "DBUS_SESSION_BUS_ADDRESS": "disabled:"}


def option_tags(options):
    """QUICHE's connection options for the flow's options."""
    tags = [tag for tag in options.get("connection_options", "").split(",") if tag]
    window = options.get("initial_window_packets")
    if window is not None:
        if window not in INITIAL_WINDOWS:
            raise Failed(
                f"chromium has no initial window of {window} packets; "
                f"choose {', '.join(INITIAL_WINDOWS)}"
            )
        tags.append(INITIAL_WINDOWS[window])
    return tags
