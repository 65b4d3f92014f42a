"""Senders whose receiver never answers say so after ten seconds, all at once; over the loopback."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from loopback import Bench, free_port, silence

from qbkit import stacks

pytestmark = pytest.mark.slow
TRANSFERS: dict[str, dict[str, Any]] = {
    "aioquic": {"duration_s": 1.0},
    **{name: {"duration_s": 15.0} for name in ("picoquic", "lsquic", "openssl")},
    **{name: {"size_bytes": 1} for name in ("jdk", "kwik", "quic-go", "x-net-quic")},
}
"""What each would send: also less than ten seconds, and more."""
NOBODY = ("ngtcp2", "ngtcp2-0.12")
"""Those that also wait where nobody has the port."""
Sender = tuple[str, subprocess.Popen[str]]


@pytest.fixture(scope="module")
def senders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Sender]]:
    """Address and process of a sender of each stack that is ready; they wait side by side."""
    started, benches = {}, []
    with ExitStack() as mute:
        for name in (*TRANSFERS, *NOBODY):
            stack = stacks.get(name)
            if not stack.status().ready:
                continue
            nobody = name in NOBODY
            address = f"127.0.0.1:{free_port()}" if nobody else mute.enter_context(silence())
            benches.append(Bench(tmp_path_factory.mktemp(name)))
            transfer = TRANSFERS.get(name, {"duration_s": 15.0})
            sender = benches[-1].send(stack, address, stack.controllers()[0], **transfer)
            started[name] = address, sender
        yield started
    for bench in benches:
        bench.close()


@pytest.mark.parametrize("name", [*TRANSFERS, *NOBODY])
def test_silence_is_a_failure_after_ten_seconds(senders: dict[str, Sender], name: str):
    if name not in senders:
        pytest.skip(stacks.get(name).status().reason)
    address, sender = senders[name]
    _, words = sender.communicate(timeout=60)
    said = f"cannot connect to {address} within 10 s"
    assert sender.returncode == 1
    assert said in words if name in NOBODY else words == f"{said}\n"
