"""Compile what a Python program imports in the guest.

    precompile.py OUT PYTHONPATH MODULE[,MODULE...] [GUEST-FOLDER=FOLDER ...]

Import the modules by the guest's PYTHONPATH, where each GUEST-FOLDER is a FOLDER of this machine,
and write the byte code of everything imported to OUT. Python in the guest finds it with
``-X pycache_prefix=OUT``. Each file holds the hash of its source, so Python ignores byte code of
another source. Run this with the interpreter that uses the result.
"""

import importlib
import importlib.util
import os
import sys
import tempfile
from py_compile import PycInvalidationMode, compile


def main(out, path, modules, *folders):
    """Import, then compile."""
    with tempfile.TemporaryDirectory() as root:
        for folder in folders:
            guest, _, here = folder.partition("=")
            os.makedirs(os.path.dirname(root + guest), exist_ok=True)
            os.symlink(here, root + guest)
        others = [entry for entry in sys.path if entry != os.path.dirname(__file__)]
        sys.path = [*(root + guest for guest in path.split(":")), *others]
        for name in modules.split(","):
            importlib.import_module(name)
        compile_imported(out, root)


def compile_imported(out, root):
    """Compile the sources of all modules under their paths in the guest."""
    sys.pycache_prefix = out
    found = {getattr(module, "__file__", None) or "" for module in sys.modules.values()}
    for source in sorted(path for path in found if path.endswith(".py")):
        path = source.removeprefix(root)
        code = importlib.util.cache_from_source(path)
        compile(source, code, path, True, invalidation_mode=PycInvalidationMode.CHECKED_HASH)


if __name__ == "__main__":
    main(*sys.argv[1:])
