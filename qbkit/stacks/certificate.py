"""The certificate of the receivers in the guest: always the same, made once into the cache."""

from __future__ import annotations

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from qbkit.stacks.build import build_once, fingerprint

NAME = "qbkit"
SEED = b"qbkit test key, known to anybody"
"""The 32 bytes of the private key. No secret: it guards nothing, and no client verifies it."""


def folder() -> Path:
    """The folder of ``cert.pem`` and ``key.pem``, with the same bytes on every machine."""
    return build_once("certificate", fingerprint([Path(__file__)]), _write)


def _write(target: Path) -> None:
    """Self-signed; Ed25519 signs without random numbers."""
    key = Ed25519PrivateKey.from_private_bytes(SEED)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.datetime(2020, 1, 1))
        .not_valid_after(datetime.datetime(2120, 1, 1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, None)
    )
    pem = serialization.Encoding.PEM
    pkcs8, open_key = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (target / "cert.pem").write_bytes(certificate.public_bytes(pem))
    (target / "key.pem").write_bytes(key.private_bytes(pem, pkcs8, open_key))
