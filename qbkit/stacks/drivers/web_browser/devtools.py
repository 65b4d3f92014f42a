"""Chrome's DevTools protocol over the pipe of --remote-debugging-pipe: JSON that ends with NUL.

The browser reads descriptor 3 and writes descriptor 4. No port and no WebSocket are involved, so a
message costs the guest one system call each way.
"""

import contextlib
import json
import os
import select
import time

from arguments import within
from process import Failed, end, ended_by_itself, start

READ_BYTES = 1 << 20
END_S = 5.0
"""How long a browser may take to end after Browser.close."""


class Browser:
    """A started browser; ``listen`` gets each event's method and parameters as they come."""

    def __init__(self, argv, env, listen, limit_s):
        self.limit_s = limit_s
        self.listen, self.rest, self.last_id, self.session = listen, b"", 0, None
        self.answers = {}
        from_us, self.to_browser = os.pipe()
        self.from_browser, to_us = os.pipe()
        self.process = start(argv, env, close_fds=False, preexec_fn=lambda: place(from_us, to_us))
        os.close(from_us)
        os.close(to_us)

    def send(self, method, session=None, **params):
        """Send a command to the page, to another session, or to the browser without either.

        Returns its number.
        """
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if session or self.session:
            message["sessionId"] = session or self.session
        with contextlib.suppress(BrokenPipeError):  # the next read reports the end
            data = json.dumps(message).encode() + b"\0"
            while data:
                data = data[os.write(self.to_browser, data) :]
        return self.last_id

    def attach(self, deadline):
        """Talk to the browser's first page from now on."""
        targets = self.ask("Target.getTargets", deadline)["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        answer = self.ask("Target.attachToTarget", deadline, targetId=page, flatten=True)
        self.session = answer["sessionId"]

    def ask(self, method, deadline, **params):
        """Send a command and wait for its result; raises Failed at the deadline or on an error."""
        number = self.send(method, **params)
        self.answers[number] = None
        while self.answers[number] is None:
            if not self.take(deadline):
                raise Failed(f"the browser did not answer {method} {within(self.limit_s)}")
        answer = self.answers.pop(number)
        if "error" in answer:
            raise Failed(f"the browser refused {method}: {answer['error'].get('message', '')}")
        return answer["result"]

    def take(self, deadline):
        """Handle what the browser writes next; False if nothing came until the deadline."""
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([self.from_browser], [], [], left)[0]:
            return False
        data = os.read(self.from_browser, READ_BYTES)
        if not data:
            raise ended_by_itself(self.process.wait())
        *messages, self.rest = (self.rest + data).split(b"\0")
        for text in messages:
            message = json.loads(text)
            if message.get("id") in self.answers:
                self.answers[message["id"]] = message
            elif "method" in message:
                self.listen(message["method"], message["params"])
        return True

    def end(self):
        """Close the browser, so that it completes its net log; kill what remains."""
        self.session = None
        self.send("Browser.close")
        os.close(self.to_browser)
        end(self.process, END_S)
        os.close(self.from_browser)


def place(from_us, to_us):
    """Give the browser its ends of the pipes as descriptors 3 and 4, and no others."""
    high = [os.dup2(fd, 64 + i) for i, fd in enumerate((from_us, to_us))]
    os.dup2(high[0], 3)
    os.dup2(high[1], 4)
    os.closerange(5, 128)
