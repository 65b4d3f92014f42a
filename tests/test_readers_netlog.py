"""Chrome's net log: a few connections by hand, and what a real Chromium writes."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated

import qbkit as qb
from qbkit.errors import TraceError
from qbkit.stacks.toolchains import certificate

NAMES = (
    "QUIC_SESSION",
    "QUIC_CONGESTION_CONTROL_CONFIGURED",
    "QUIC_SESSION_CRYPTO_FRAME_SENT",
    "QUIC_SESSION_STREAM_FRAME_SENT",
    "QUIC_SESSION_ACK_FRAME_SENT",
    "QUIC_SESSION_WINDOW_UPDATE_FRAME_SENT",
    "QUIC_SESSION_PACKET_SENT",
    "QUIC_SESSION_COALESCED_PACKET_SENT",
    "QUIC_SESSION_PACKET_RECEIVED",
    "QUIC_SESSION_UNAUTHENTICATED_PACKET_HEADER_RECEIVED",
    "QUIC_SESSION_PACKET_AUTHENTICATED",
    "QUIC_SESSION_ACK_FRAME_RECEIVED",
    "QUIC_SESSION_PACKET_LOST",
    "QUIC_SESSION_HANDSHAKE_DONE_FRAME_RECEIVED",
    "HTTP3_LOCAL_CONTROL_STREAM_CREATED",
    "HTTP3_SETTINGS_SENT",
    "HTTP3_HEADERS_SENT",
    "HTTP3_DATA_SENT",
    "HTTP3_DATA_FRAME_RECEIVED",
    "HTTP2_SESSION",
    "HTTP2_SESSION_SEND_HEADERS",
    "HTTP2_SESSION_RECV_DATA",
    "URL_REQUEST",
)
TYPES = {name: number for number, name in enumerate(NAMES, 100)}
START_MS = 5000


def event(time_ms: int, name: str, source: int = 7, **params: object) -> dict:
    return {
        "params": params,
        "phase": 0,
        "source": {"id": source, "start_time": "1", "type": 13},
        "time": str(START_MS + time_ms),
        "type": TYPES[name],
    }


def sent(time_us: int, number: int, offset: int | None, again: bool = False) -> list[dict]:
    level = "ENCRYPTION_INITIAL" if offset is None else "ENCRYPTION_FORWARD_SECURE"
    frame = (
        event(time_us // 1000, "QUIC_SESSION_CRYPTO_FRAME_SENT", offset=0)
        if offset is None
        else event(time_us // 1000, "QUIC_SESSION_STREAM_FRAME_SENT", stream_id=4, offset=offset)
    )
    packet = event(
        time_us // 1000, "QUIC_SESSION_PACKET_SENT", packet_number=number, size=1250,
        encryption_level=level, sent_time_us=START_MS * 1000 + time_us,
        transmission_type="LOSS_RETRANSMISSION" if again else "NOT_RETRANSMISSION",
    )  # fmt: skip
    return [frame, packet]


def received(time_ms: int, number: int, low: int, high: int, missing: list[int],
             kind: str | None = None) -> list[dict]:  # fmt: skip
    head = {"packet_number": number, **({"long_header_type": kind} if kind else {})}
    return [
        event(time_ms, "QUIC_SESSION_PACKET_RECEIVED", size=40),
        event(time_ms, "QUIC_SESSION_UNAUTHENTICATED_PACKET_HEADER_RECEIVED", **head),
        event(time_ms, "QUIC_SESSION_PACKET_AUTHENTICATED"),
        event(time_ms, "QUIC_SESSION_ACK_FRAME_RECEIVED", smallest_observed=low,
              largest_observed=high, missing_packets=missing,
              delta_time_largest_observed_us=0),
    ]  # fmt: skip


EVENTS = [
    event(0, "QUIC_SESSION", host="a.example", port=443),
    event(0, "QUIC_CONGESTION_CONTROL_CONFIGURED", congestion_control_type="CUBIC_BYTES",
          initial_congestion_window=32),
    event(0, "HTTP3_LOCAL_CONTROL_STREAM_CREATED", stream_id=2),
    *sent(200, 1, None),
    event(1, "QUIC_SESSION_CRYPTO_FRAME_SENT", offset=0),  # logged again
    event(1, "QUIC_SESSION_COALESCED_PACKET_SENT", info="…"),
    *received(40, 0, 1, 1, [], "INITIAL"),
    event(41, "HTTP3_SETTINGS_SENT"),
    event(41, "HTTP3_HEADERS_SENT", stream_id=4),
    *sent(42_100, 2, 0), *sent(42_200, 3, 1200), *sent(42_300, 4, 2400), *sent(42_400, 5, 3600),
    *sent(42_500, 6, 4800),
    event(42, "HTTP3_DATA_SENT", stream_id=4, payload_length=6000),
    event(82, "QUIC_SESSION_PACKET_LOST", packet_number=3, detection_time_us=5_082_600,
          transmission_type="LOSS_RETRANSMISSION"),
    *received(82, 1, 2, 6, [3]),
    *sent(82_700, 7, 1200, again=True),
    *received(123, 2, 2, 7, []),
    event(124, "HTTP3_DATA_FRAME_RECEIVED", stream_id=4, payload_length=2),
]  # fmt: skip
OTHERS = [
    event(3, "QUIC_SESSION", 9, host="b.example", port=443),
    *({**e, "source": {"id": 9, "type": 13}} for e in sent(3000, 1, None)),
    event(4, "HTTP2_SESSION", 11, host="c.example:443", proxy="DIRECT"),
    event(5, "HTTP2_SESSION_SEND_HEADERS", 11, stream_id=1, fin=True),
    event(6, "HTTP2_SESSION_RECV_DATA", 11, stream_id=1, size=777, fin=True),
    event(6, "URL_REQUEST", 12),
]


def lines(events: list[dict], end: str = ']\n"polledData": []\n}\n') -> str:
    head = json.dumps({"constants": {"logEventTypes": TYPES}}, separators=(",", ":"))[:-1]
    rows = ",\n".join(json.dumps(e, separators=(",", ":")) for e in events)
    return f'{head},\n"events": [\n{rows}{end}'


def document(events: list[dict]) -> str:
    return json.dumps({"constants": {"logEventTypes": TYPES}, "events": events}, indent=1)


def read(folder: Path, text: str, **options: object):
    path = folder / "net.json"
    path.write_text(text)
    return qb.read_netlog(path, **options)


@pytest.mark.parametrize("text", [lines(EVENTS), document(EVENTS)], ids=["lines", "document"])
def test_a_connection_by_hand(tmp_path, text):
    ds = read(tmp_path, text)
    assert json.loads(ds.attrs["warnings"]) == []
    assert ds.attrs["title"] == "a.example:443"
    assert ds.attrs["vantage_point"] == "client"
    assert (ds.attrs["controller"], ds.attrs["initial_window_packets"]) == ("CUBIC_BYTES", 32)
    assert ds.sent_number.values.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert ds.sent_space.values.tolist() == [0, 2, 2, 2, 2, 2, 2]
    assert ds.sent_offset_bytes.values.tolist() == [-1, 0, 1200, 2400, 3600, 4800, 1200]
    assert ds.sent_time_s.values[:2] == pytest.approx([0.0002, 0.0421])
    assert ds.acked_number.values.tolist() == [1, 4, 5, 6, 2, 7]  # the newest range first
    assert ds.lost_number.values.tolist() == [3]
    assert ds.lost_time_s.values == pytest.approx([0.0826])
    assert ds.lost_spurious.values.tolist() == [True]  # the last ACK has it
    assert ds.lost_trigger.values.tolist() == ["loss_retransmission"]
    # Half a millisecond for what the log's clock cuts off: 40.5 - 0.2, 82.5 - 42.5, ...
    assert ds.latest_rtt_ms.values == pytest.approx([40.3, 40.0, 40.8])
    assert ds.bytes_in_flight.values.tolist() == [0, 0, 0]
    assert ds.handshake_frames.values[:2].tolist() == ["crypto", "ACK 1"]
    frames = list(zip(ds.http_direction.values, ds.http_stream.values, ds.http_frame.values,
                      ds.http_size_bytes.values, strict=True))  # fmt: skip
    assert frames == [("sent", 2, "settings", 0), ("sent", 4, "headers", 0),
                      ("sent", 4, "data", 6000), ("received", 4, "data", 2)]  # fmt: skip


def test_an_acknowledgement_counts_once_and_the_handshake_is_not_in_flight(tmp_path):
    """Chromium's numbers go on over the spaces; nobody acknowledges its last handshake packets."""
    frame, packet = sent(1000, 2, None)
    packet["params"]["encryption_level"] = "ENCRYPTION_HANDSHAKE"
    ack = received(50, 0, 3, 3, [])
    done = event(50, "QUIC_SESSION_HANDSHAKE_DONE_FRAME_RECEIVED")
    events = [*sent(200, 1, None), frame, packet, *sent(2000, 3, 0), *ack[:-1], done, ack[-1]]
    ds = read(tmp_path, lines([event(0, "QUIC_SESSION", host="a.example"), *events]))
    assert ds.bytes_in_flight.values.tolist() == [0]
    assert ds.acked_number.values.tolist() == [3]


def test_one_of_several_connections(tmp_path):
    text = lines([*EVENTS, *OTHERS])
    assert "has 3 connections, 7 (a.example:443" in read(tmp_path, text).attrs["warnings"]
    for wanted in (9, "9", "b.example"):
        assert read(tmp_path, text, connection=wanted).sizes["sent"] == 1
    two = read(tmp_path, text, connection="c.example")
    assert two.http_frame.values.tolist() == ["headers", "data"]
    assert two.http_size_bytes.values.tolist() == [0, 777]
    with pytest.raises(
        TraceError, match=r"no connection d\.example; it has 7 \(a\.example:443, 10"
    ):
        read(tmp_path, text, connection="d.example")
    with pytest.raises(TraceError, match="no QUIC and no HTTP/2"):
        read(tmp_path, lines(OTHERS[-1:]))


@pytest.mark.slow
def test_a_log_of_a_browser_that_was_killed(tmp_path):
    text = lines(EVENTS)
    whole = read(tmp_path, text)
    for cut in range(len(text) - 60, len(text) // 3, -97):
        ds = read(tmp_path, text[:cut])
        assert "damaged or cut off" in ds.attrs["warnings"]
        count = ds.sizes["sent"]
        assert np.array_equal(ds.sent_number, whole.sent_number[:count])
    damaged = text.replace('"HTTP', "HTTP").replace('"packet_number":4', '"packet_number":4"')
    ds = read(tmp_path, damaged.replace("HTTP", '"HTTP'))
    assert "damaged or cut off at byte" in ds.attrs["warnings"]
    assert ds.sent_number.values.tolist() == [1, 2, 3, 5, 6, 7]
    assert "damaged" in read(tmp_path, document(EVENTS)[:-300]).attrs["warnings"]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"packet_number": -1}, "a packet number of -1"),
        ({"packet_number": "x"}, "not a whole number"),
        ({"packet_number": 1, "size": 1 << 40}, "a packet of"),
        ({"packet_number": 1 << 62}, "a packet number of"),
        ({"packet_number": [[[1]]]}, "not a whole number"),
        ({"packet_number": 1, "sent_time_us": 10**400}, "at byte"),
    ],
)
@pytest.mark.parametrize("form", [lines, document])
def test_hostile_events_are_errors_of_one_sentence(tmp_path, params, words, form):
    bad = event(5, "QUIC_SESSION_PACKET_SENT", encryption_level="", **params)
    with pytest.raises(TraceError) as raised:
        read(tmp_path, form([*EVENTS, bad]))
    assert "\n" not in str(raised.value)
    assert words in str(raised.value) or form is document


def test_what_is_no_net_log(tmp_path):
    for text in ("", "hello", "[1, 2]", '{"constants": 7}', '{"constants":{"logEventTypes":[]},\n'):
        with pytest.raises(TraceError, match=r"no net log|no JSON"):
            read(tmp_path, text)


PAGE = b"""<!doctype html><link rel=icon href="data:,"><script>
fetch("/300000").then(r => r.arrayBuffer())
  .then(() => fetch("/up", {method: "POST", body: new Blob([new Uint8Array(400000)])}))
  .then(() => { document.body.innerText = "uploaded" })
</script><body></body>"""


class _Server(QuicConnectionProtocol):
    """GET / is the page, GET /N has N bytes, POST is read."""

    http: H3Connection | None = None

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http, self.paths = H3Connection(self._quic), {}
        for found in self.http.handle_event(event) if self.http else ():
            if isinstance(found, HeadersReceived):
                self.paths[found.stream_id] = dict(found.headers)[b":path"].decode()
            if isinstance(found, HeadersReceived | DataReceived) and found.stream_ended:
                self.answer(found.stream_id, self.paths[found.stream_id])
        self.transmit()

    def answer(self, stream, path):
        body = bytes(int(path[1:])) if path[1:].isdigit() else PAGE if path == "/" else b"ok"
        kind = b"text/html" if path == "/" else b"text/plain"
        self.http.send_headers(stream, [(b":status", b"200"), (b"content-type", kind)])
        self.http.send_data(stream, body, end_stream=True)


@pytest.fixture
def server():
    """The port of an HTTP/3 server on the loopback."""
    files, loop, ports = certificate.folder(), asyncio.new_event_loop(), []
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(files / "browser-cert.pem", files / "browser-key.pem")
    ready = threading.Event()

    async def start():
        found = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=_Server)
        ports.append(found._transport.get_extra_info("sockname")[1])
        ready.set()

    def work():
        loop.run_until_complete(start())
        loop.run_forever()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(20)
    yield ports[0]
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


@pytest.mark.browser
@pytest.mark.slow
def test_a_real_browser_s_log(tmp_path, server):
    chromium = shutil.which("chromium") or pytest.skip("no Chromium; apt-get install chromium")
    spki = (certificate.folder() / "browser-spki").read_text().strip()
    name, log = certificate.BROWSER_NAME, tmp_path / "net.json"
    flags = "--headless --no-sandbox --no-zygote --no-first-run --disable-gpu --in-process-gpu"
    command = [
        *(chromium, *flags.split(), f"--user-data-dir={tmp_path}/profile"),
        f"--host-resolver-rules=MAP {name} 127.0.0.1,MAP * ~NOTFOUND,EXCLUDE 127.0.0.1",
        f"--origin-to-force-quic-on={name}:{server}",
        f"--ignore-certificate-errors-spki-list={spki}",
        *(f"--log-net-log={log}", "--virtual-time-budget=30000", "--dump-dom"),
        f"https://{name}:{server}/",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "uploaded" in done.stdout
    ds = qb.read_netlog(log, connection=name)
    assert ds.attrs["title"] == f"{name}:{server}"
    assert ds.attrs["controller"] == "CUBIC_BYTES"
    ended = ds.sent_time_s.values[ds.sent_space.values == 2]
    assert np.all(np.diff(ended) >= 0)
    # What was sent is acknowledged or lost, but for what was in flight at the end.
    assert ds.sizes["acked"] + ds.sizes["lost"] > ds.sizes["sent"] - 60
    data = ds.http_frame.values == "data"
    by_direction = [
        int(ds.http_size_bytes.values[data & (ds.http_direction.values == d)].sum())
        for d in ("sent", "received")
    ]
    assert by_direction == [400_000, 300_000 + len(PAGE) + 2]
    assert ds.handshake_space.values[0] == 0
    whole = log.read_bytes()
    log.write_bytes(whole[: len(whole) * 2 // 3])
    cut = qb.read_netlog(log, connection=name)
    assert "damaged or cut off" in cut.attrs["warnings"]
    assert 0 < cut.sizes["sent"] < ds.sizes["sent"]
