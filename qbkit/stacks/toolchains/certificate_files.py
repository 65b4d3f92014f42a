"""Writes the files that `qbkit.stacks.toolchains.certificate` lists."""

from __future__ import annotations

import base64
import datetime
import hashlib
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SEED = b"qbkit test key, known to anybody"
"""The 32 bytes of the private key. No secret: it guards nothing, and no client verifies it."""
PRIMES = (
    "f2855f020c64ca65f25745c11d6c9ca7dbd77d8eff8764362667c816d71b467fd79f2da675a0d6bf4543ef"
    "9fa24cca367b49e02fa39aea2d15a65c92bebde4c888a076961ac913b687ed411a834f25b3efc7ba4519b8"
    "46309b652c499207d45e12c1c4fa6df8c9ba53d2341c65e30ce6bc7b64818c888bd9c261bf0bbd741b05",
    "e18b4914650fb43fceb0c8ffa6fe6269dd2bb86c77a14ceb6f05ecbd11338c136a99312635c15b674ccd94"
    "f107b4dfbeb662a091df6ba0a99423e03987fd972e228195fcb242d86307939fd731bfde234cbfa6e4edc5"
    "4f8a411a486c1d8a2f49627e3fdb8a713ef3fffacb5ba3620addb6f95b6a0bdafa537151fc86178fe943",
)
"""The two primes of the browsers' RSA key, which is no secret either."""
PEM = serialization.Encoding.PEM
Key = Ed25519PrivateKey | rsa.RSAPrivateKey


def write(target: Path, name: str, browser_name: str) -> None:
    """Write all files into a folder, with the same bytes on every machine.

    ``name`` and ``browser_name`` are the hosts that the two certificates are for.
    """
    plain = Ed25519PrivateKey.from_private_bytes(SEED)  # signs without random numbers
    _save(target / "cert.pem", _unsigned(name, name, plain, 1, _names(name)).sign(plain, None))
    _save_key(target / "key.pem", plain)
    key = _rsa_key()
    authority, rule = f"{name} test authority", x509.BasicConstraints(ca=True, path_length=0)
    root = _unsigned(authority, authority, key, 1).add_extension(rule, critical=True)
    leaf = _unsigned(browser_name, authority, key, 2, _names(browser_name))
    _save(target / "browser-ca.pem", root.sign(key, hashes.SHA256()))
    _save(target / "browser-cert.pem", leaf.sign(key, hashes.SHA256()))
    _save_key(target / "browser-key.pem", key)
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    public = key.public_key().public_bytes(serialization.Encoding.DER, spki)
    digest = base64.b64encode(hashlib.sha256(public).digest())
    (target / "browser-spki").write_bytes(digest + b"\n")


def _unsigned(
    subject: str, issuer: str, key: Key, serial: int, names: x509.ExtensionType | None = None
) -> x509.CertificateBuilder:
    """A certificate for ``key``, valid for a century, so that it includes a guest's fixed date."""
    common = x509.NameOID.COMMON_NAME
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(common, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(common, issuer)]))
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(datetime.datetime(2020, 1, 1))
        .not_valid_after(datetime.datetime(2120, 1, 1))
    )
    return builder.add_extension(names, critical=False) if names else builder


def _names(name: str) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([x509.DNSName(name)])


def _rsa_key() -> rsa.RSAPrivateKey:
    p, q = (int(prime, 16) for prime in PRIMES)
    e = 65537
    d = pow(e, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(e, p * q)
    crt = (rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q))
    return rsa.RSAPrivateNumbers(p, q, d, *crt, public).private_key()


def _save(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(PEM))


def _save_key(path: Path, key: Key) -> None:
    pkcs8, open_key = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(key.private_bytes(PEM, pkcs8, open_key))
