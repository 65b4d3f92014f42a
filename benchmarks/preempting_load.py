"""A neighbour that takes a processor away ten thousand times a second, at any instruction.

python benchmarks/preempting_load.py: until it is ended.
"""

from __future__ import annotations

import ctypes
import random
import time

PR_SET_TIMERSLACK = 29

ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)  # wake up to the nanosecond
while True:
    time.sleep(random.uniform(20e-6, 80e-6))
