"""Open a file that may be compressed, whatever its name."""

from __future__ import annotations

import bz2
import lzma
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import zstandard

PIECE_BYTES = 1 << 10
"""Damage loses what one piece of compressed bytes holds."""
MOST_TIMES = 4
"""How many times a file may be compressed; a crafted one decompresses to itself."""
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
"""What the decompressors raise for a file that is damaged."""


class Decoder(Protocol):
    """Decompresses one member (gzip), frame (Zstandard) or stream (xz, bzip2)."""

    @property
    def eof(self) -> bool:
        """Whether it has come to its end."""

    @property
    def unused_data(self) -> bytes:
        """What follows the end."""

    def decompress(self, data: bytes, /) -> bytes:
        """The content of the next compressed bytes."""


FORMATS: dict[bytes, Callable[[], object]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(wbits=16 + zlib.MAX_WBITS),
    b"\x28\xb5\x2f\xfd": lambda: zstandard.ZstdDecompressor().decompressobj(),
    b"\xfd7zXZ\x00": lzma.LZMADecompressor,
    b"BZh": bz2.BZ2Decompressor,
}
"""First bytes of a compressed file → its decoder: gzip, Zstandard, xz, bzip2."""


def open_plain(path: Path, broken: Callable[[str], None]) -> BinaryIO:
    """The content of a file, decompressed into a temporary file if it is compressed, even twice.

    Where compressed content is damaged or cut off, it calls ``broken`` with the place and returns
    what comes before. Raises OSError if the file cannot be read.
    """
    file: BinaryIO = path.open("rb")
    for _ in range(MOST_TIMES):
        head = file.read(max(map(len, FORMATS)))
        file.seek(0)
        decoder = next((make for magic, make in FORMATS.items() if head.startswith(magic)), None)
        if decoder is None:
            break
        plain = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115  # the caller closes it
        with file:
            for content in _decompressed(file, cast("Callable[[], Decoder]", decoder)):
                if content is None:
                    broken(f"after byte {plain.tell()} of its decompressed content")
                else:
                    plain.write(content)
        plain.seek(0)
        file = plain
    return file


def _decompressed(file: BinaryIO, start: Callable[[], Decoder]) -> Iterator[bytes | None]:
    """Yield the content in pieces, and None last if it is damaged or cut off."""
    decoder, rest = start(), b""
    while piece := rest or file.read(PIECE_BYTES):
        rest = b""
        if decoder.eof:  # another member, or zeros that fill a block
            piece = piece.lstrip(b"\0")
            if not piece:
                continue
            decoder = start()
        try:
            content = decoder.decompress(piece)
        except DAMAGE:
            yield None
            return
        yield content
        rest = decoder.unused_data if decoder.eof else b""
    if not decoder.eof:
        yield None
