"""Charts and HTML: pure functions from datasets and metrics to Altair charts.

`__init__.pyi` lists the names. Each is imported at its first use, since a page needs few.
"""

import lazy_loader

from qbkit.kinds import guarded

_lookup, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = guarded(_lookup, __name__)
