"""A user's own lsquic (LiteSpeed), by its sample programs ``perf_client`` and ``perf_server``.

They speak the IETF perf protocol; the client uploads. Command line: ``perf_client -h``, in the
sources bin/perf_client.c (``-p NREQ:NSEND``), bin/prog.c (``-A`` controller, ``-s``, ``-c``) and
bin/test_common.c (the names after ``-o``, which docs/apiref.rst explains as ``es_...``).
"""

from __future__ import annotations

from typing import ClassVar

from qbkit.stacks.base import Options, Transfer
from qbkit.stacks.external.launcher import CERTIFICATE, ENDLESS_BYTES, KEY, WINDOW_BYTES, External
from qbkit.stacks.registry import register
from qbkit.stacks.toolchains.certificate import BROWSER_NAME

VERSION = ["-o", "version=h3"]
"""Only QUIC version 1: after a Retry, which a large first flight causes, lsquic 4.9 fails to agree
on version 2 (its two ends continue with different keys)."""
WINDOWS = ("init_max_data", "init_max_stream_data_bidi_remote", "max_cfcw", "max_sfcw")


class LsquicExternal(External):
    """``perf_client`` uploads to ``perf_server``."""

    name: ClassVar[str] = "lsquic-external"
    source: ClassVar[str] = "external: github.com/litespeedtech/lsquic"
    setting: ClassVar[str] = "QBKIT_LSQUIC"
    programs: ClassVar[tuple[str, ...]] = ("perf_client", "perf_server")
    how: ClassVar[str] = "build perf_client and perf_server of github.com/litespeedtech/lsquic"
    names: ClassVar[dict[str, str]] = {"cubic": "1", "bbr": "2", "adaptive": "3"}
    options: ClassVar[dict[str, str]] = {"pacing": "false: send without pacing"}

    def recv_argv(self, *, address: str, out: str, options: Options) -> list[str]:
        """The server, with windows that never limit."""
        windows = [word for name in WINDOWS for word in ("-o", f"{name}={WINDOW_BYTES}")]
        keys = f"{BROWSER_NAME},{CERTIFICATE},{KEY}"
        command = [self.at("perf_server"), "-L", "warn", "-s", address, "-c", keys]
        return self.listen(address, [*command, *VERSION, *windows])

    def send_argv(self, transfer: Transfer) -> list[str]:
        """The client, which requests nothing and sends ``size_bytes``."""
        command = [self.at("perf_client"), "-L", "warn", "-s", transfer.address, "-H", BROWSER_NAME]
        size = f"0:{transfer.size_bytes or ENDLESS_BYTES}"
        command += [*VERSION, "-A", self.names[transfer.controller], "-p", size]
        if "pacing" in transfer.options:
            command += ["-o", f"pace_packets={int(bool(transfer.options['pacing']))}"]
        return self.connect(command, transfer.duration_s)


register(LsquicExternal())
