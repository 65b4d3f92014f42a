"""The responses of a page, from the events of DevTools' domain Network."""

from process import Failed

NO_CONTENT = 204
INLINE = ("data:", "blob:")
"""Addresses that no request over the network asks for."""


class Resources:
    """Collects events; times are of the browser's monotonic clock, in seconds."""

    def __init__(self):
        self.rows, self.pending, self.failures = {}, set(), []

    def take(self, name, params):
        """Take one event of the domain by its name."""
        method = getattr(self, name, None)
        if method and not params.get("request", params).get("url", "").startswith(INLINE):
            method(params)

    def waited_for(self):
        """URLs of the responses that have not come, in the order of their requests."""
        return [row["url"] for key, row in self.rows.items() if key in self.pending]

    def requestWillBeSent(self, params):
        if "redirectResponse" in params:
            self.redirected(params["requestId"], params["redirectResponse"], params["timestamp"])
        self.pending.add(params["requestId"])
        self.rows[params["requestId"]] = {
            "url": params["request"]["url"],
            "type": params.get("type", "Other").lower(),
            "priority": params["request"]["initialPriority"],
            "start_s": params["timestamp"],
            "own": by_itself(params),
        }

    def redirected(self, request, response, time_s):
        """Keep a redirect beside what it leads to, unless the browser itself leads to https."""
        row = self.rows.pop(request, None)
        if row and row["url"].startswith("https:"):
            answer(row, response, time_s)
            row["end_s"], row["bytes"] = time_s, response["encodedDataLength"]
            self.rows[request, time_s] = row

    def responseReceived(self, params):
        row = self.rows.get(params["requestId"])
        if row is not None:
            answer(row, params["response"], params["timestamp"])

    def loadingFinished(self, params):
        self.pending.discard(params["requestId"])
        if params["requestId"] in self.rows:
            row = self.rows[params["requestId"]]
            row["end_s"], row["bytes"] = params["timestamp"], params["encodedDataLength"]

    def loadingFailed(self, params):
        self.pending.discard(params["requestId"])
        row = self.rows.get(params["requestId"])
        if row and row.get("status") == NO_CONTENT:  # a fetch() of nothing ends so
            row["end_s"], row["bytes"] = params["timestamp"], 0
            return
        self.rows.pop(params["requestId"], None)
        if row and not row["own"] and (not params.get("canceled") or row.get("status", 200) >= 400):
            status = row.get("status", 200)
            self.failures.append((row["url"], status if status >= 400 else params["errorText"]))

    def checked(self, protocol):
        """All responses in the order of their requests; raises Failed for one that is no use."""
        rows = sorted(self.rows.values(), key=lambda row: row["start_s"])
        rows = [row for row in rows if not (row.pop("own") and row.get("status", 200) >= 400)]
        wrong = next((row for row in rows if row.get("protocol", protocol) != protocol), None)
        if wrong:
            raise Failed(
                f"asked for {protocol}, the server answered {wrong['url']} by {wrong['protocol']}"
            )
        missing = [(row["url"], row["status"]) for row in rows if row.get("status", 200) >= 400]
        missing += self.failures
        if missing:
            url, why = missing[0]
            raise Failed(f"the page lacks {len(missing)} of its resources; {url} gave {why}")
        return [row for row in rows if "end_s" in row and "first_byte_s" in row]


def answer(row, response, time_s):
    """Add to a row what a response says."""
    timing = response.get("timing", {})  # the script of a worker has none
    row["protocol"], row["status"] = response.get("protocol", ""), response["status"]
    row["media_type"] = response["mimeType"]
    row["connection"] = response["connectionId"]
    row["first_byte_s"] = moment(timing, "receiveHeadersStart") or time_s
    # QUIC connects by its handshake, TCP before that of TLS.
    connected = "connectEnd" if row["protocol"] == "h3" else "sslStart"
    row["connect_s"], row["handshake_s"] = moment(timing, connected), moment(timing, "connectEnd")


def by_itself(params):
    """Whether the browser asks without the page: for an icon, or to install the page as an app."""
    kind = params.get("type")
    return kind == "Manifest" or (kind == "Other" and params["initiator"]["type"] == "other")


def moment(timing, name):
    """The time of a phase; None where there is none."""
    ended = timing.get(name, -1) >= 0
    return timing["requestTime"] + timing[name] / 1e3 if ended else None
