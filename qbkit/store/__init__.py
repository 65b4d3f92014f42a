"""Data on disk: runs, the results of sweeps, published data.

`__init__.pyi` lists the names. Each is imported at its first use, since the name of a run's file
needs no xarray.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
