"""Altair's compound charts, with qbkit's theme and shown without internet.

Altair's own settings stay as they are: the theme is on while a chart becomes Vega-Lite, and the
chart shows itself. A theme or a renderer that the user has enabled is used instead. Charts that are
joined (``a | b``, ``a & b``) are Altair's again; `qbkit.plots.enable` is for those.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import altair as alt

from qbkit.plots import theme
from qbkit.plots.render import mimebundle


@contextmanager
def _own_theme() -> Iterator[None]:
    """qbkit's theme, unless the user has chosen one."""
    if alt.theme.active != "default":
        yield
        return
    theme.register()
    with alt.theme.enable(theme.THEME):
        yield


class _Own(alt.TopLevelMixin):
    """What the three kinds of charts have in common; Altair copies a chart as its own kind."""

    def to_dict(self, *args: Any, **kwds: Any) -> dict[str, Any]:
        """The chart as Vega-Lite."""
        with _own_theme():
            return super().to_dict(*args, **kwds)

    def _repr_mimebundle_(self, *args: Any, **kwds: Any) -> Any:
        if alt.renderers.active != "default":
            return super()._repr_mimebundle_(*args, **kwds)
        return mimebundle(self.to_dict())


class LayerChart(_Own, alt.LayerChart):
    """Layers."""


class HConcatChart(_Own, alt.HConcatChart):
    """Charts beside each other."""


class VConcatChart(_Own, alt.VConcatChart):
    """Charts below each other."""
