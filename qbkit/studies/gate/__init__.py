"""A gate for CI: does this build of an implementation pass, and did it change?"""

from qbkit.studies.gate.gate import RIVALS, Gated, gate
from qbkit.studies.gate.report import save_gate

__all__ = ["RIVALS", "Gated", "gate", "save_gate"]
