"""The certificates of the receivers in the guest: always the same, written once to the cache.

Programs that verify nothing use ``cert.pem`` and ``key.pem``. Browsers verify certificates and
reject Ed25519. They use ``browser-cert.pem`` for `BROWSER_NAME` with ``browser-key.pem``, the
authority ``browser-ca.pem`` that signed it, and ``browser-spki``, the hash that makes Chromium
accept the key. RSA signatures, unlike ECDSA's, all have the same length.
"""

from __future__ import annotations

from pathlib import Path

from qbkit.stacks.toolchains.build import build_once, fingerprint

NAME = "qbkit"
BROWSER_NAME = "test.example"
WRITER = Path(__file__).with_name("certificate_files.py")


def folder() -> Path:
    """Folder of all these files, with the same bytes on every machine."""
    return build_once("certificate", fingerprint([Path(__file__), WRITER]), _write)


def _write(target: Path) -> None:
    from qbkit.stacks.toolchains.certificate_files import write  # needs cryptography, slow to load

    write(target, NAME, BROWSER_NAME)
