"""Upload by HTTP/3 from a browser: the sender of the stacks chromium and neqo.

    main.py chromium|firefox CERTIFICATES send --connect IP:PORT --controller CC
            (--duration-s X | --bytes N) --out DIR [--option K=V ...]

Standard library only, so that the guest's own Python runs it. Its computations take no time on the
guest's clock.
"""

import contextlib
import signal
import sys
import tempfile
import threading
import time
from queue import Empty, SimpleQueue

from arguments import parse
from chromium import Chromium
from failure import ConnectionLost
from firefox import Firefox
from process import Failed, end, start

BROWSERS = {"chromium": Chromium, "firefox": Firefox}
CONNECT_S = 10.0
END_S = 3.0
"""How long a browser may take to end after SIGTERM."""
LOST_CONNECTION = 3
"""Exit status of a driver whose connection ended before its time (docs/howto/own-stack.md)."""


def main(words):
    """Upload, then end the browser; return the exit status."""
    try:
        arguments = parse(words)
        with tempfile.TemporaryDirectory(
            prefix=f"qbkit-{arguments.port}-", ignore_cleanup_errors=True
        ) as scratch:
            upload(arguments, scratch)
    except ConnectionLost as lost:
        if "status" in lost.known:  # qbkit quotes the last line
            print(f"{arguments.browser} ended by itself", file=sys.stderr)
        lost.report(arguments.out)
        return LOST_CONNECTION
    except (Failed, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def upload(arguments, scratch):
    """Upload until time or bytes run out, or SIGTERM; raises Failed when the browser cannot, and
    ConnectionLost when its upload broke or the browser died."""
    begin = time.monotonic()
    outcomes = SimpleQueue()
    signal.signal(signal.SIGTERM, lambda *_: outcomes.put(("stopped", "")))
    browser = BROWSERS[arguments.browser](arguments, scratch)
    with browser.telemetry(outcomes) as telemetry:
        process = start(browser.argv(outcomes), browser.env())
        ended = threading.Thread(
            target=lambda: outcomes.put(("ended", process.wait())), daemon=True
        )
        ended.start()
        how, text = outcome(outcomes, telemetry, begin, arguments.duration_s)
        # It knows when; a clock is read in an early end only, as that takes time in the guest.
        lost = ConnectionLost() if how in ("ended", "failed") else None
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)  # so that it closes its log
        end(process, END_S)
    status = text
    if how == "ended":
        how, text = browser.outcome(status)
    if how in ("ended", "failed") and telemetry.connected:
        lost.known |= {"status": status} if how == "ended" else {"reason": text, **telemetry.end}
        raise lost
    if how == "ended":
        raise Failed(f"{arguments.browser} ended by itself: {text}")
    if not telemetry.connected and how != "stopped":
        raise Failed(f"cannot connect to {arguments.address} within {CONNECT_S:g} s")
    if how == "failed":
        raise Failed(f"the upload to {arguments.address} failed: {text}")
    if telemetry.complaint:
        raise Failed(telemetry.complaint)


def outcome(outcomes, telemetry, begin, duration_s):
    """How the upload ended, and what was said of it."""
    deadline = begin + (duration_s or threading.TIMEOUT_MAX / 2)
    how, text = first(outcomes, min(begin + CONNECT_S, deadline))
    if how == "over" and telemetry.connected:
        how, text = first(outcomes, deadline)
    return how, text


def first(outcomes, deadline):
    """What happened first: a report of the page or of the process, or the end of the time."""
    try:
        return outcomes.get(timeout=max(0.0, deadline - time.monotonic()))
    except Empty:
        return ("over", "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
