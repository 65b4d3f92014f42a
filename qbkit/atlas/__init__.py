"""The atlas: a static site of published data, with a page for each implementation."""

from qbkit.atlas.site import write_atlas

__all__ = ["write_atlas"]
