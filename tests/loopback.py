"""Programs of stacks, started on this machine as in the guest, over the loopback interface."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from qbkit import stacks
from qbkit.stacks.base import CERTIFICATE_MOUNT, Options, Stack, Transfer
from qbkit.stacks.toolchains import certificate
from qbkit.stacks.web.base import WebProgram

GUEST_ROOT = "/run/qb"


@dataclass
class Bench:
    """Starts programs of stacks here: /run/qb is a folder of symbolic links."""

    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, stack: Stack | WebProgram, argv: list[str]) -> subprocess.Popen[str]:
        mounts = {**stack.mounts(), CERTIFICATE_MOUNT: certificate.folder()}
        for guest, host in mounts.items():
            link = Path(self.here(guest))
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.symlink_to(host)
        env = {name: self.here(value) for name, value in stack.env().items()}
        process = subprocess.Popen(
            [self.here(word) for word in argv],
            env={"PATH": os.environ["PATH"], **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def here(self, word: str) -> str:
        return word.replace(GUEST_ROOT, str(self.folder / "qb"))

    def receive(self, stack: Stack, address: str, options: Options) -> subprocess.Popen[str]:
        out = str(self.folder)
        argv = stack.recv_argv(address=address, out=out, options=options)
        process = self.start(stack, argv)
        assert process.stdout and process.stdout.readline() == "ready\n"
        return process

    def send(
        self,
        stack: Stack,
        address: str,
        controller: str = "reno",
        duration_s: float | None = None,
        size_bytes: int | None = None,
        options: Options | None = None,
    ) -> subprocess.Popen[str]:
        argv = stack.send_argv(
            Transfer(
                address=address,
                controller=controller,
                out=str(self.folder),
                duration_s=duration_s,
                size_bytes=size_bytes,
                options=options or {},
            )
        )
        return self.start(stack, argv)

    @contextmanager
    def receiver(
        self, stack: Stack, options: Options | None = None
    ) -> Iterator[tuple[str, subprocess.Popen[str]]]:
        """A receiver on a free port; it must end well on SIGTERM."""
        address = f"127.0.0.1:{free_port()}"
        process = self.receive(stack, address, options or {})
        yield address, process
        end(process)

    def one_second(self, stack: Stack, controller: str) -> tuple[int, list[dict[str, str]]]:
        """Bytes that arrived in a second of upload, and the sender's samples, in order of time."""
        assert controller in stack.controllers()
        with self.receiver(stack) as (address, _):
            succeed(self.send(stack, address, controller, duration_s=1.0))
        received = [(int(row["time_ns"]), int(row["bytes"])) for row in self.rows("receiver.csv")]
        assert received == sorted(received)
        samples = self.rows("sender.csv")
        times_ns = [int(row["time_ns"]) for row in samples]
        assert times_ns == sorted(times_ns)
        return received[-1][1], samples

    def arrived_bytes(self, stack: Stack, controller: str = "reno", *, size_bytes: int) -> int:
        """What the receiver counts of a transfer of a size."""
        with self.receiver(stack) as (address, _):
            succeed(self.send(stack, address, controller, size_bytes=size_bytes))
        return int(self.rows("receiver.csv")[-1]["bytes"])

    def end_in_mid_flow(self, stack: Stack, controller: str = "reno", after_s: float = 0.5) -> None:
        """Sender, then receiver, end well on SIGTERM before the flow is over."""
        with self.receiver(stack) as (address, _):
            sender = self.send(stack, address, controller, duration_s=60.0)
            with pytest.raises(subprocess.TimeoutExpired):
                sender.wait(after_s)
            end(sender)

    def end_while_connecting(
        self, stack: Stack, controller: str = "reno", after_s: float = 0.5
    ) -> None:
        """A sender that nobody answers ends well on SIGTERM."""
        with silence() as address:
            sender = self.send(stack, address, controller, size_bytes=1)
            with pytest.raises(subprocess.TimeoutExpired):
                sender.wait(after_s)
            end(sender)

    def refuse(
        self, stack: Stack, controller: str, sentence: str, options: Options | None = None
    ) -> None:
        """A sender says what is wrong in a sentence, and connects to nobody."""
        address = f"127.0.0.1:{free_port()}"
        sender = self.send(stack, address, controller, duration_s=1.0, options=options)
        _, words = sender.communicate(timeout=30)
        assert (sender.returncode, words) == (1, f"{sentence}\n")

    def close(self) -> None:
        """End what still runs."""
        for process in self.processes:
            process.kill()
            process.communicate()

    def rows(self, name: str) -> list[dict[str, str]]:
        with (self.folder / name).open() as file:
            return list(csv.DictReader(file))


def built_with_go(name: str) -> Stack:
    """The stack, built; the test is skipped where there is no Go to build it with."""
    stack = stacks.get(name)
    if not stack.status().ready and not shutil.which("go"):
        pytest.skip(f"{name} cannot be built here: {stack.status().reason}")
    stack.build()
    return stack


def free_port() -> int:
    """A port that neither UDP nor TCP uses."""
    while True:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
            socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp,
            suppress(OSError),
        ):
            udp.bind(("127.0.0.1", 0))
            tcp.bind(udp.getsockname())
            return int(udp.getsockname()[1])


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    succeed(process)


def succeed(process: subprocess.Popen[str]) -> None:
    _, words = process.communicate(timeout=30)
    assert (process.returncode, words) == (0, "")


@contextmanager
def silence() -> Iterator[str]:
    """An address that never answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{mute.getsockname()[1]}"
