"""Altair's compound charts with qbkit's theme, shown without internet.

Altair's global settings stay unchanged: the theme is active only while a chart is converted to
Vega-Lite, and the chart renders itself. If the user has enabled a theme or a renderer, the chart
uses that. Joined charts (``a | b``, ``a & b``) are plain Altair charts; for those there is
`qbkit.plots.enable`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import altair as alt

from qbkit.plots.drawing import theme
from qbkit.plots.drawing.render import RENDERER, mimebundle

_joining: ContextVar[bool] = ContextVar("_joining", default=False)
"""Whether a chart is being made of others, of which Altair sets new names and parameters."""


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
    """Theme and display of the chart classes; Altair's copies keep the class of a chart."""

    def __init__(self, *args: Any, **kwds: Any) -> None:
        joining = _joining.set(True)
        try:
            super().__init__(*args, **kwds)
        finally:
            _joining.reset(joining)

    def to_dict(self, *args: Any, **kwds: Any) -> dict[str, Any]:
        """The Vega-Lite specification of the chart."""
        with _own_theme():
            return super().to_dict(*args, **kwds)

    def copy(self: Any, deep: Any = True, ignore: list[str] | None = None) -> Any:
        """A copy, as Altair's is.

        `to_dict` asks for one that shares everything, and a chart that is joined of others needs no
        more. Altair's would combine the charts below again, and so copy them whole at every level,
        which takes most of the time of many panels.
        """
        if deep is not False and not (deep is True and _joining.get()):
            altairs: Any = super()
            return altairs.copy(deep, ignore)
        made = object.__new__(type(self))
        object.__setattr__(made, "_args", self._args)
        object.__setattr__(made, "_kwds", dict(self._kwds))
        return made

    def _repr_mimebundle_(self, *args: Any, **kwds: Any) -> Any:
        if alt.renderers.active not in ("default", RENDERER):
            return super()._repr_mimebundle_(*args, **kwds)
        # Altair has checked each part when it was made; the whole again takes half of the time.
        return mimebundle(self.to_dict(validate=False))


class Chart(_Own, alt.Chart):
    """Single and faceted charts."""


class LayerChart(_Own, alt.LayerChart):
    """Layered charts."""


class ConcatChart(_Own, alt.ConcatChart):
    """Charts in rows of so many columns."""


class HConcatChart(_Own, alt.HConcatChart):
    """Charts beside each other."""


class VConcatChart(_Own, alt.VConcatChart):
    """Charts below each other."""
