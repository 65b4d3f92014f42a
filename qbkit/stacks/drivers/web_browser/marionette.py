"""Firefox's Marionette protocol over the loopback: ``LENGTH:[0, NUMBER, COMMAND, PARAMETERS]``."""

import contextlib
import json
import socket
import subprocess
import time

from arguments import within
from process import Failed, end, ended_by_itself, start

READ_BYTES = 1 << 20
LOOK_AGAIN_S = 0.05
"""How often to look whether Firefox has opened its port."""
PORT_FILE = "MarionetteActivePort"
"""File in the profile that names the port, for preference marionette.port = 0."""


class Firefox:
    """A started Firefox with one session; every answer is due before ``deadline``."""

    def __init__(self, argv, env, profile, deadline, limit_s):
        self.deadline, self.limit_s, self.number, self.rest = deadline, limit_s, 0, b""
        self.connection = None
        self.process = start(argv, env)
        self.port_file = f"{profile}/{PORT_FILE}"

    def connect(self):
        """Wait for the port, then for the greeting."""
        while not (port := self.port()):
            self.require_alive()
            self.left_s("open its port")
            time.sleep(LOOK_AGAIN_S)
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.read("greet")

    def port(self):
        """The port once Firefox has written it, else 0."""
        try:
            with open(self.port_file) as file:
                return int(file.read() or 0)
        except FileNotFoundError:
            return 0

    def ask(self, command, **params):
        """Send a command and wait for its result; raises Failed on an error or at the deadline."""
        self.number += 1
        text = json.dumps([0, self.number, command, params]).encode()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # read() reports the end
            self.connection.sendall(b"%d:%s" % (len(text), text))
        _, _, error, result = self.read(command)
        if error:
            raise Failed(f"the browser refused {command}: {error['message']}")
        return result

    def script(self, context, text, *arguments):
        """What a script calls its last argument with, in the ``chrome`` or the ``content``."""
        self.ask("Marionette:SetContext", value=context)
        answer = self.ask("WebDriver:ExecuteAsyncScript", script=text, args=arguments)
        return answer["value"]

    def read(self, what):
        """The next message."""
        while b":" not in self.rest:
            self.receive(what)
        length, _, self.rest = self.rest.partition(b":")
        while len(self.rest) < int(length):
            self.receive(what)
        text, self.rest = self.rest[: int(length)], self.rest[int(length) :]
        return json.loads(text)

    def receive(self, what):
        """More bytes of a message; none if the wait ended early."""
        self.connection.settimeout(self.left_s(what))
        try:
            data = self.connection.recv(READ_BYTES)
        except TimeoutError:
            self.left_s(what)  # raises Failed, unless the timer was a little early
            return
        except ConnectionResetError:
            data = b""
        if not data:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1.0)
            self.require_alive()
            raise Failed("the browser closed its connection")
        self.rest += data

    def left_s(self, what):
        """Seconds until the deadline; raises Failed when there are none."""
        left_s = self.deadline - time.monotonic()
        if left_s <= 0:
            raise Failed(f"the browser did not answer {what} {within(self.limit_s)}")
        return left_s

    def require_alive(self):
        """Raise Died once the browser has ended."""
        status = self.process.poll()
        if status is not None:
            raise ended_by_itself(status)

    def end(self):
        """Kill the browser's processes: nothing that it would write on its way out is wanted."""
        end(self.process)
