"""Captures and telemetry as run datasets, and logs as event tables.

`__init__.pyi` lists the names. Each is imported at its first use, since a run reads no logs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
