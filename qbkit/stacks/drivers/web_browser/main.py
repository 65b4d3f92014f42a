"""Load a page in a headless browser and write down what happened.

    main.py BROWSER CERTIFICATES --url URL --address IP:PORT --host NAME [--host NAME ...]
            --protocol h2|h3 --limit-s X --out DIR

Writes ``load.json``, ``devtools.jsonl`` (events of DevTools, one a line), ``netlog.json`` and the
screenshots ``frame-NNNN.jpg``; where the browser dies, ``receiver-end.json`` instead of the first
(docs/howto/own-stack.md). Standard library only, so that the guest's own Python runs it.
"""

import json
import sys
import tempfile
import time

import chromium
from arguments import parse
from devtools import Browser
from load import PageLoad
from process import Died, Failed
from report import report


def main(words, load):
    """Load the page by ``load``; return the exit status."""
    start_s = time.monotonic()
    try:
        arguments = parse(words)
        with tempfile.TemporaryDirectory(prefix="qbkit-", ignore_cleanup_errors=True) as scratch:
            result = load(arguments, scratch, start_s)
        with open(f"{arguments.out}/load.json", "w") as file:
            json.dump(result, file)
    except (Failed, OSError) as error:
        print(error, file=sys.stderr)
        if isinstance(error, Died):
            with open(f"{arguments.out}/receiver-end.json", "w") as file:
                json.dump(error.known, file)
        return 1
    return 0


def load(arguments, scratch, start_s):
    """Load the page; the document for load.json."""
    deadline = start_s + arguments.limit_s
    with open(f"{arguments.out}/devtools.jsonl", "w", buffering=1 << 20) as events:
        page = PageLoad(events, arguments.out)
        words = chromium.argv(arguments, scratch)
        browser = Browser(words, chromium.env(scratch), page.listen, arguments.limit_s)
        try:
            version = browser.ask("Browser.getVersion", deadline)["product"]
            times = page.run(browser, arguments.url, deadline)
        finally:
            browser.end()
    resources = page.resources.checked(arguments.protocol)
    return report(arguments, version, resources, times, page.frames, start_s)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], load))
