"""The site of a page: its folder in the cache, generated or taken from a recording once."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

from qbkit.errors import SpecError
from qbkit.stacks.toolchains.build import build_once, fingerprint
from qbkit.stacks.web.pages.page import Page, read, write
from qbkit.stacks.web.site import Site, date

SIZES = ("small", "medium", "large")
"""The pages that can be generated."""
LIBRARIES = ("fonttools", "numpy", "pillow")
"""What a page's bytes depend on beside our own code."""
HERE = Path(__file__).parent


def page_site(page: str, seed: int) -> Site:
    """The site of a generated page (see `SIZES`) with this seed, or of a recording at this path.

    Raises SpecError for a path that holds no page.
    """
    code = [*HERE.glob("*.py"), HERE.parent / "site.py"]
    versions = [f"{name} {version(name)}" for name in LIBRARIES]
    if page in SIZES:
        key = fingerprint(code, page, str(seed), *versions)
    else:
        key = fingerprint(code, _content(Path(page)), *versions)

    def make(folder: Path) -> None:
        write(_page(page, seed), folder)
        date(folder)

    folder = build_once("web-page", key, make)
    made = read(folder)
    return Site(folder, made.document.path, made.hosts)


def _page(page: str, seed: int) -> Page:
    # Both need libraries that are slow to import.
    from qbkit.stacks.web.pages.generated import generate
    from qbkit.stacks.web.pages.recorded import recorded_page

    return generate(page, seed) if page in SIZES else recorded_page(Path(page))


def _content(path: Path) -> str:
    """Hash of a recording; raises SpecError where there is none."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    digest = hashlib.sha256(path.name.encode())
    try:
        for file in files:
            digest.update(file.relative_to(path).as_posix().encode())
            digest.update(file.read_bytes())
    except OSError as error:
        raise SpecError(
            f"there is no page {str(path)!r} ({error.strerror}); "
            f"choose {', '.join(SIZES)}, or the path of a recorded page"
        ) from None
    return digest.hexdigest()
