"""qbkit: congestion control of real QUIC and TCP stacks, measured in virtual time.

``import qbkit as qb``; then ``qb.Experiment(flows=["tcp:cubic", "tcp:bbr"]).run()``.

`__init__.pyi` lists the public names. Each is imported on first use, so the command line starts at
once. Importing qbkit also registers the accessor ``ds.qb`` (`qbkit.accessor`).
"""

import lazy_loader

from qbkit import accessor
from qbkit.kinds import guarded

__version__ = "1.3.0"

_lookup, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = guarded(_lookup, __name__)

accessor.register()
