"""Who sends: the registry of stacks, and one file for each."""

from importlib import import_module
from pkgutil import iter_modules

from qbkit.stacks.base import ServingStack, Stack, Status, Transfer
from qbkit.stacks.registry import all_stacks, get, register

__all__ = ["ServingStack", "Stack", "Status", "Transfer", "all_stacks", "get", "register"]


def _register_all() -> None:
    """Import the files of stacks, releases and web programs, which register what they define."""
    for folder in ("", ".external", ".releases", ".web.clients", ".web.servers"):
        package = import_module(f"{__name__}{folder}")
        for module in iter_modules(package.__path__):
            import_module(f"{package.__name__}.{module.name}")
    # The user's come last: one that has the name of one of ours only warns.
    import_module(f"{__name__}.external.configured").register_all()


_register_all()
