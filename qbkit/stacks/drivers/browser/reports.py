"""A small web server on the loopback; the page reports to it how the upload ended."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


class Reports:
    """Runs until this process ends; puts pairs (``done`` or ``failed``, text) into ``outcomes``."""

    def __init__(self, outcomes):
        self.outcomes, self.html = outcomes, ""
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        """URL of ``html``."""
        # Checks once an hour whether to stop, for it ends with this process.
        threading.Thread(target=self.server.serve_forever, args=(3600.0,), daemon=True).start()


def handler(reports):
    """The class that handles the server's requests."""

    class Request(BaseHTTPRequestHandler):
        def do_GET(self):
            path, query = urlsplit(self.path)[2:4]
            if path in ("/done", "/failed"):
                reports.outcomes.put((path[1:], unquote(query)))
            body = reports.html.encode() if path == "/" else b""
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Log nothing: the sender's log holds failures only."""

    return Request
