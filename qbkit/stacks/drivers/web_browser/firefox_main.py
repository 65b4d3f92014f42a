"""Load a page in headless Firefox and write down what happened; arguments as for main.py.

Writes ``load.json``. Standard library only, so that the guest's own Python runs it. Two scripts do
the work inside Firefox: one in the browser's window, which sees all requests, one in the page.
"""

import os
import re
import sys
import time

import firefox
from arguments import incomplete
from load import QUIET_S, VIEWPORT
from main import main
from marionette import Firefox
from process import Failed
from report import report

ANSWER_S = 3.0
"""Firefox may take so long to say what it waits for; its timers are late in an idle window."""
HERE = os.path.dirname(os.path.realpath(__file__))


def load(arguments, scratch, start_s):
    """Load the page; the document for load.json."""
    profile = f"{scratch}/profile"
    words = firefox.argv(arguments, profile)
    deadline = start_s + arguments.limit_s
    browser = Firefox(words, firefox.env(scratch), profile, deadline, arguments.limit_s)
    try:
        browser.connect()
        # Without a limit for scripts, Marionette does not wait for one at all.
        timeouts = {"script": round(arguments.limit_s * 1e3)}
        session = browser.ask("WebDriver:NewSession", timeouts=timeouts)
        version = f"Firefox/{session['capabilities']['browserVersion']}"
        requests = requested(browser, arguments)
        times = browser.script("content", script("firefox_times"))
    finally:
        browser.end()
    return report(arguments, version, resources(requests, arguments), times, None, start_s)


def requested(browser, arguments):
    """All requests of the page, once it is complete and at rest; raises Failed when it is not."""
    authority, certificate = (
        base64_of(f"{arguments.certificates}/browser-{name}.pem") for name in ("ca", "cert")
    )
    left_s = browser.left_s("load the page")
    ip, _, port = arguments.address.rpartition(":")
    found = browser.script(
        "chrome",
        script("firefox_load"),
        arguments.url,
        ip,
        int(port),
        arguments.hosts,
        authority,
        certificate,
        VIEWPORT["width"],
        VIEWPORT["height"],
        QUIET_S * 1e3,
        (left_s - min(ANSWER_S, left_s / 4)) * 1e3,
    )
    if "error" in found:
        refused = found["error"].startswith("certificate")
        what = "the browser refused the certificate of" if refused else "cannot load"
        raise Failed(f"{what} {arguments.url}: {found['error']}")
    if "pending" in found:
        raise incomplete(arguments.url, arguments.limit_s, found["pending"])
    return found["requests"]


def resources(requests, arguments):
    """Rows as those of Chromium, on the monotonic clock; Failed where one is no use."""
    ahead_s = time.time() - time.monotonic()
    rows = sorted(requests, key=lambda row: row["start_s"])
    wrong = next((row for row in rows if row["protocol"] not in (None, arguments.protocol)), None)
    if wrong:
        raise Failed(
            f"asked for {arguments.protocol}, "
            f"the server answered {wrong['url']} by {wrong['protocol']}"
        )
    # By URL: what failed early is asked for again.
    why = {row["url"]: reason for row in rows if (reason := failure(row)) is not None}
    if why:
        url = next(iter(why))
        raise Failed(f"the page lacks {len(why)} of its resources; {url} gave {why[url]}")
    done = [row for row in rows if row["first_byte_s"] and row["end_s"]]
    for row in done:
        # QUIC connects by its handshake, TCP before that of TLS.
        tcp_s = row.pop("tcp_s")
        row["connect_s"] = row["handshake_s"] if row["protocol"] == "h3" else tcp_s
        for key in ("start_s", "connect_s", "handshake_s", "first_byte_s", "end_s"):
            row[key] = None if row[key] is None else row[key] - ahead_s
        del row["failure"]
    return done


def failure(row):
    """Why a request gave nothing of use: the status of its response, or an error; else None."""
    return row["status"] if (row["status"] or 0) >= 400 else row["failure"]


def base64_of(path):
    """What stands between the lines of a PEM file, in one."""
    with open(path) as file:
        return re.sub(r"-----[A-Z ]+-----|\s", "", file.read())


def script(name):
    """The text of a script."""
    with open(f"{HERE}/{name}.js") as file:
        return file.read()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], load))
