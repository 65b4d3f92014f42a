"""No file crashes a reader: it returns a dataset, or raises an error of one sentence."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import pytest
import test_readers_capture as captures
import test_readers_netlog as netlogs
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from quic_pair import upload

import qbkit as qb
from qbkit.errors import QbkitError
from qbkit.traces.logs.http3 import FrameFinder

PATIENT = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
QUIC_NETLOG = [netlogs.lines([*netlogs.EVENTS, *netlogs.OTHERS]), netlogs.document(netlogs.EVENTS)]


@pytest.fixture(scope="module")
def samples(tmp_path_factory) -> dict[str, list[bytes]]:
    """Real and made files of each kind."""
    folder = tmp_path_factory.mktemp("samples")
    seen = upload(20_000, frozenset({8}))
    quic, keys = seen.write(folder)
    made = [
        captures.write(folder, captures.TRANSFER, n).read_bytes() for n in ("a.pcap", "a.pcapng")
    ]
    whole = json.dumps(seen.client_qlog)
    head = json.dumps({"qlog_version": "0.3", "trace": {}})
    lines = [json.dumps(e) for e in seen.client_qlog["traces"][0]["events"]]
    return {
        "qlog": [whole.encode(), "\n".join([head, *lines]).encode()],
        "netlog": [text.encode() for text in QUIC_NETLOG],
        "tcp": made,
        "quic": [quic.read_bytes()],
        "keys": [keys.read_bytes()],
    }


READERS = {
    "qlog": qb.read_qlog,
    "netlog": qb.read_netlog,
    "tcp": qb.read_capture,
    "quic": lambda path: qb.read_capture(path, keylog=path.with_suffix(".keys")),
}


def damaged(data: st.DataObject, content: bytes) -> bytes:
    """The file with bytes changed, taken out, put in or doubled, and perhaps cut off."""
    text = bytearray(content)
    for _ in range(data.draw(st.integers(0, 6))):
        place = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 40))
        other = data.draw(st.integers(0, len(text)))
        put = data.draw(st.one_of(st.binary(max_size=12), st.just(bytes(text[other : other + 300])),
                                  st.sampled_from([b"-1", b"1e400", b"9" * 30, b"[[[[", b"null",
                                                   b'"', b"\xff\xff\xff\xff"])))  # fmt: skip
        text[place : place + length] = put
    return bytes(text[: data.draw(st.integers(0, len(text)))] if data.draw(st.booleans()) else text)


def try_to_read(kind: str, path: Path) -> None:
    try:
        ds = READERS[kind](path)
    except QbkitError as error:
        assert "\n" not in str(error)
        assert len(str(error)) < 1000
    else:
        assert isinstance(ds, xr.Dataset)
        assert isinstance(json.loads(ds.attrs["warnings"]), list)
        assert ds.nbytes < 1000 * (path.stat().st_size + 1000)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["qlog", "netlog", "tcp"])
@settings(max_examples=80, suppress_health_check=PATIENT, deadline=None)
@given(data=st.data())
def test_damaged_files(kind, samples, tmp_path, data):
    path = tmp_path / "file"
    path.write_bytes(damaged(data, data.draw(st.sampled_from(samples[kind]))))
    try_to_read(kind, path)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("tshark"), reason="apt-get install tshark")
@settings(max_examples=6, suppress_health_check=PATIENT, deadline=None)
@given(data=st.data())
def test_damaged_captures_of_quic(samples, tmp_path, data):
    path = tmp_path / "file.pcap"
    path.write_bytes(damaged(data, samples["quic"][0]))
    path.with_suffix(".keys").write_bytes(damaged(data, samples["keys"][0]))
    try_to_read("quic", path)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_http3_frames_are_found_in_any_order_and_division(data):
    sizes = data.draw(st.lists(st.sampled_from([0, 1, 62, 63, 64, 300, 17_000]), max_size=6))
    kinds = [data.draw(st.sampled_from([0, 1, 4, 0xF0700])) for _ in sizes]
    text = b"".join(varint(k) + varint(n) + bytes(n) for k, n in zip(kinds, sizes, strict=True))
    cuts = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=12))})
    parts = [(a, text[a:b]) for a, b in itertools.pairwise(cuts)]
    again = data.draw(st.lists(st.sampled_from(parts), max_size=3)) if parts else []
    finder = FrameFinder(0)
    found = [f for part in data.draw(st.permutations([*parts, *again])) for f in finder.take(*part)]
    assert [size for _, size in found] == sizes
    names = {0: "data", 1: "headers", 4: "settings", 0xF0700: "priority_update"}
    assert [name for name, _ in found] == [names[kind] for kind in kinds]


def varint(value: int) -> bytes:
    """RFC 9000 §16."""
    for bits, length in ((6, 1), (14, 2), (30, 4), (62, 8)):
        if value < 1 << bits:
            return (value | (length.bit_length() - 1) << (8 * length - 2)).to_bytes(length)
    raise ValueError(value)
