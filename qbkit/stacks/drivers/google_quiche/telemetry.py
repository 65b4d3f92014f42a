"""Turn Envoy's statsd reports of its QUIC connection into the telemetry of a flow.

telemetry.py IP:PORT CONTROLLER FILE: listens there for datagrams ``name:value|type`` and writes
FILE on SIGTERM. Standard library only: it runs in the guest.

QUICHE's CUBIC and Reno have no estimate of the bandwidth and report their window over the smoothed
RTT instead (TcpCubicSenderBytes::BandwidthEstimate), which gives the window. QUICHE's BBRs do not
report theirs.
"""

import signal
import socket
import sys
import time

HEADER = "time_ns,cwnd_bytes,srtt_ms,delivery_rate_mbps,retransmits\n"
WINDOW_BASED = ("cubic", "reno")
SRTT, BANDWIDTH, RETRANSMITTED = (
    "cx_rtt_us",
    "cx_tx_estimated_bandwidth",
    "cx_tx_packets_retransmitted_total",
)
DATAGRAM_BYTES = 65536


class Ended(Exception):
    """SIGTERM came."""


class Table:
    """One row per report of the connection, once it has measured its RTT."""

    def __init__(self, controller):
        self.has_window = controller in WINDOW_BASED
        self.rows = []
        self.retransmits = 0
        self.srtt_us = 0

    def take(self, name, value, now_ns):
        """Handle one statistic; the bandwidth follows the RTT, once that is known."""
        if name == RETRANSMITTED:
            self.retransmits += value
        elif name == SRTT:
            self.srtt_us = value
        elif name == BANDWIDTH:
            # Envoy rounds bytes per second down, so rounding the window up makes it exact.
            window = -(-value * self.srtt_us // 1_000_000) if self.has_window else ""
            rate = "" if self.has_window else f"{value * 8 / 1e6:.3f}"
            self.rows.append((now_ns, window, self.srtt_us / 1000, rate, self.retransmits))

    def write(self, path):
        """Write the rows as comma-separated values."""
        with open(path, "w") as file:
            file.write(HEADER)
            file.writelines(",".join(map(str, row)) + "\n" for row in self.rows)


def end(*_):
    raise Ended


def main(address, controller, path):
    ip, _, port = address.rpartition(":")
    table = Table(controller)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as inbox:
        inbox.bind((ip, int(port)))
        signal.signal(signal.SIGTERM, end)
        try:
            while True:
                datagram = inbox.recv(DATAGRAM_BYTES)
                now_ns = time.time_ns()
                for line in datagram.decode().splitlines():
                    name, _, rest = line.rpartition(":")
                    table.take(name.rpartition(".")[2], int(rest.partition("|")[0]), now_ns)
        except Ended:
            table.write(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
