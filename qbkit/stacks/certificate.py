"""The certificates of the receivers in the guest: always the same, made once into the cache.

``cert.pem`` and ``key.pem`` are for programs that verify nothing. Browsers verify, and refuse
Ed25519; for them there is ``browser-cert.pem`` for `BROWSER_NAME` with ``browser-key.pem``, the
authority ``browser-ca.pem`` that signed it, and ``browser-spki``, the hash by which Chromium is
told to accept its key. RSA's signatures, unlike ECDSA's, are all of one length.
"""

from __future__ import annotations

from pathlib import Path

from qbkit.stacks.build import build_once, fingerprint

NAME = "qbkit"
BROWSER_NAME = "test.example"
WRITER = Path(__file__).with_name("certificate_files.py")


def folder() -> Path:
    """The folder of all these files, with the same bytes on every machine."""
    return build_once("certificate", fingerprint([Path(__file__), WRITER]), _write)


def _write(target: Path) -> None:
    from qbkit.stacks.certificate_files import write  # needs cryptography, slow to load

    write(target, NAME, BROWSER_NAME)
