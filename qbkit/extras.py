"""The packages that running and judging do not need: the extra ``notebooks``."""

from __future__ import annotations

from importlib.util import find_spec

from qbkit.errors import MissingExtra

NOTEBOOKS = "qbkit[notebooks]"
"""What pip installs for notebooks, web pages, packet headers, and the cubes of sweeps."""


def require(*packages: str, to: str) -> None:
    """Raise MissingExtra unless these packages, by the names they are imported by, are installed.

    ``to`` says what needs them: "execute notebooks".
    """
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise MissingExtra(
            f"to {to}, install {NOTEBOOKS}: {' and '.join(missing)} not found "
            f"(pip install '{NOTEBOOKS}')"
        )
