"""Open a file that may be compressed, whatever its name."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, BinaryIO, cast

import zstandard

CHUNK_BYTES = 1 << 20
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
"""What the decompressors raise for a file that is damaged or cut off."""


def _zstd(file: BinaryIO) -> IO[bytes]:
    return cast(
        "IO[bytes]", zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    )


def _gzip(file: BinaryIO) -> IO[bytes]:
    return cast("IO[bytes]", gzip.GzipFile(fileobj=file))


FORMATS: dict[bytes, Callable[[BinaryIO], IO[bytes]]] = {
    b"\x1f\x8b": _gzip,
    b"\x28\xb5\x2f\xfd": _zstd,
    b"\xfd7zXZ\x00": lzma.open,
    b"BZh": bz2.open,
}
"""First bytes of a compressed file → how to decompress it: gzip, Zstandard, xz, bzip2."""


def open_plain(path: Path, broken: Callable[[str], None]) -> BinaryIO:
    """The content of a file, decompressed into a temporary file if it is compressed.

    Where compressed content is damaged or cut off, it calls ``broken`` with the place and returns
    what comes before. Raises OSError if the file cannot be read.
    """
    file = path.open("rb")
    head = file.read(max(map(len, FORMATS)))
    file.seek(0)
    decompress = next((how for magic, how in FORMATS.items() if head.startswith(magic)), None)
    if decompress is None:
        return file
    plain = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115  # the caller closes it
    with file:
        stream = decompress(file)
        try:
            while part := stream.read(CHUNK_BYTES):
                plain.write(part)
        except DAMAGE:
            broken(f"after byte {plain.tell()} of its decompressed content")
    plain.seek(0)
    return plain


def is_compressed(path: Path) -> bool:
    """Whether a file is compressed; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(max(map(len, FORMATS)))
    except OSError:
        return False
    return head.startswith(tuple(FORMATS))
