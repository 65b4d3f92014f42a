"""The library that saves event loops system calls skips none that matters."""

from __future__ import annotations

import ctypes
import errno
import select
import socket

import pytest

from qbkit.stacks.toolchains import preload

EDGE = select.EPOLLIN | select.EPOLLOUT | select.EPOLLET
EPOLL_CTL_ADD = 1
BATCH = 4


class Event(ctypes.Structure):
    """struct epoll_event of x86-64."""

    _pack_ = 1
    _fields_ = [("events", ctypes.c_uint32), ("data", ctypes.c_uint64)]


class Part(ctypes.Structure):
    """struct iovec."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class Header(ctypes.Structure):
    """struct msghdr."""

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("parts", ctypes.POINTER(Part)),
        ("part_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


class Message(ctypes.Structure):
    """struct mmsghdr: the header is padded to 56 bytes, so one message takes 64."""

    _fields_ = [("header", Header), ("length", ctypes.c_uint)]


assert ctypes.sizeof(Message) == 64, "the kernel would write past the end of an array of them"


class Loop:
    """An event loop on one datagram socket that calls the library instead of libc."""

    def __init__(self) -> None:
        folder = next(iter(preload.EVENT_LOOP.mounts().values()))
        self.library = ctypes.CDLL(str(folder / "fewer_calls.so"), use_errno=True)
        self.library.sendto.restype = ctypes.c_ssize_t
        self.near, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.near.setblocking(False)
        self.far.setblocking(False)
        self.poller = select.epoll()
        event = Event(EDGE, 77)
        watched = self.library.epoll_ctl(
            self.poller.fileno(), EPOLL_CTL_ADD, self.near.fileno(), ctypes.byref(event)
        )
        assert watched == 0

    def wait(self) -> int:
        """The events that are there."""
        found = (Event * 8)()
        count = self.library.epoll_wait(self.poller.fileno(), found, 8, 0)
        assert count in (0, 1)
        return found[0].events if count else 0

    def receive(self) -> int:
        """How many datagrams a batch got; 0 on EAGAIN."""
        buffer = ctypes.create_string_buffer(100)
        part = Part(ctypes.addressof(buffer), 100)
        messages = (Message * BATCH)()
        for message in messages:
            message.header.parts, message.header.part_count = ctypes.pointer(part), 1
        got = self.library.recvmmsg(self.near.fileno(), messages, BATCH, 0, None)
        assert got > 0 or ctypes.get_errno() == errno.EAGAIN
        return max(got, 0)

    def send(self) -> bool:
        """Whether there was room for a datagram."""
        return self.library.sendto(self.near.fileno(), b"x", 1, 0, None, 0) == 1


@pytest.fixture
def loop():
    """A loop whose socket is known to be non-blocking and to have room."""
    made = Loop()
    assert made.wait() == select.EPOLLOUT
    assert made.receive() == 0
    yield made
    made.library.close(made.near.detach())
    made.far.close()
    made.poller.close()


def test_an_emptied_socket_is_not_read_again(loop):
    loop.far.send(b"1")
    assert loop.receive() == 1
    loop.far.send(b"2")  # it would be found if the kernel were asked
    assert loop.receive() == 0
    assert loop.receive() == 1


def test_what_comes_after_a_batch_wakes_the_loop(loop):
    loop.far.send(b"1")
    assert loop.wait() == select.EPOLLIN
    assert loop.receive() == 1
    loop.far.send(b"2")
    assert loop.receive() == 0
    assert loop.wait() == select.EPOLLIN
    assert loop.receive() == 1


def test_a_socket_is_read_again_after_a_full_batch(loop):
    for _ in range(BATCH + 1):
        loop.far.send(b"x")
    assert [loop.receive() for _ in range(3)] == [BATCH, 1, 0]


def test_a_datagram_that_was_sent_does_not_wake_the_loop(loop):
    assert loop.send()
    loop.far.recv(1)
    assert loop.wait() == 0


def test_room_wakes_a_loop_that_found_none(loop):
    while loop.send():
        pass
    assert loop.wait() == 0
    while True:
        try:
            loop.far.recv(1)
        except BlockingIOError:
            break
    assert loop.wait() & select.EPOLLOUT
    assert loop.send()
    loop.far.recv(1)
    assert loop.wait() == 0
