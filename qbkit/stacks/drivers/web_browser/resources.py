"""The responses of a page, from the events of DevTools' domain Network."""

from failure import Failed


class Resources:
    """Collects events; times are of the browser's monotonic clock, in seconds."""

    def __init__(self):
        self.rows, self.pending, self.failures = {}, set(), []

    def take(self, name, params):
        """Take one event of the domain by its name."""
        method = getattr(self, name, None)
        if method and not params.get("request", params).get("url", "").startswith("data:"):
            method(params)

    def requestWillBeSent(self, params):
        if "redirectResponse" in params:
            redirect = params["requestId"]
            self.rows[redirect, params["timestamp"]] = self.rows.pop(redirect)
        self.pending.add(params["requestId"])
        self.rows[params["requestId"]] = {
            "url": params["request"]["url"],
            "type": params.get("type", "Other").lower(),
            "priority": params["request"]["initialPriority"],
            "start_s": params["timestamp"],
        }

    def responseReceived(self, params):
        row, response = self.rows.get(params["requestId"]), params["response"]
        if row is None:
            return
        timing = response.get("timing", {})
        row["protocol"], row["status"] = response.get("protocol", ""), response["status"]
        row["media_type"] = response["mimeType"]
        row["connection"] = response["connectionId"]
        row["first_byte_s"] = timing["requestTime"] + timing["receiveHeadersStart"] / 1e3
        # QUIC connects by its handshake, TCP before that of TLS.
        connected = "connectEnd" if row["protocol"] == "h3" else "sslStart"
        for key, name in (("connect_s", connected), ("handshake_s", "connectEnd")):
            row[key] = timing["requestTime"] + timing[name] / 1e3 if timing[name] >= 0 else None

    def loadingFinished(self, params):
        self.pending.discard(params["requestId"])
        if params["requestId"] in self.rows:
            row = self.rows[params["requestId"]]
            row["end_s"], row["bytes"] = params["timestamp"], params["encodedDataLength"]

    def loadingFailed(self, params):
        self.pending.discard(params["requestId"])
        row = self.rows.pop(params["requestId"], None)
        if row and (not params.get("canceled") or row.get("status", 200) >= 400):
            status = row.get("status", 200)
            self.failures.append((row["url"], status if status >= 400 else params["errorText"]))

    def checked(self, protocol):
        """All responses in the order of their requests; raises Failed for one that is no use."""
        rows = sorted(self.rows.values(), key=lambda row: row["start_s"])
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
