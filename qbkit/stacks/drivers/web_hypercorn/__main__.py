"""Command line of the server, which ends on SIGTERM.

web_hypercorn IP:PORT CONTROLLER CERT KEY SITE
"""

from __future__ import annotations

import asyncio
import functools
import mimetypes
import os
import sys

from hypercorn.asyncio import serve
from hypercorn.config import Config
from hypercorn.protocol import quic


class Files:
    """An ASGI application that answers paths with the files of a folder, kept in memory."""

    def __init__(self, folder):
        self.answers = {}
        for parent, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(parent, name)
                kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
                with open(path, "rb") as file:
                    self.answers["/" + os.path.relpath(path, folder)] = (kind, file.read())

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        found = self.answers.get(scope["path"])
        kind, body = found or ("text/plain", b"not found")
        headers = {"content-type": kind, "content-length": str(len(body))}
        await send(
            {
                "type": "http.response.start",
                "status": 200 if found else 404,
                "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            }
        )
        await send({"type": "http.response.body", "body": body})


def main(address, controller, cert, key, site):
    # Hypercorn has no setting for aioquic's controller.
    quic.QuicConfiguration = functools.partial(
        quic.QuicConfiguration, congestion_control_algorithm=controller
    )
    config = Config.from_mapping(
        bind=[address], quic_bind=[address], certfile=cert, keyfile=key, loglevel="WARNING"
    )
    never = asyncio.Event()  # Hypercorn would wait for its clients; SIGTERM must end it at once
    asyncio.run(serve(Files(site), config, shutdown_trigger=never.wait, mode="asgi"))


if __name__ == "__main__":
    main(*sys.argv[1:])
