"""What was seen: captures and telemetry to one run dataset.

`__init__.pyi` lists the names. Each is imported when it is first used: a run reads no logs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
