"""Metrics: pure functions of run datasets and of arrays.

`__init__.pyi` lists the names. Each is imported at its first use, since a run needs few.
"""

import lazy_loader

from qbkit.kinds import guarded

_lookup, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = guarded(_lookup, __name__)
