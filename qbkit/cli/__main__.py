"""``python -m qbkit.cli``."""

from qbkit.cli import main

main()
