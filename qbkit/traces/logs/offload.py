"""How large a sender's segments are on the wire, where its capture lacks the handshake.

A host with segmentation offload captures several segments as one frame, whose payload is a multiple
of theirs, except at the end of what a program wrote.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import gcd

from qbkit.traces.logs.tcp import HEADER_BYTES, USUAL_PAYLOAD

LEAST, LARGEST = 500, 9176
"""Payload of a full segment: with less it is a rest; most with jumbo frames."""
COMPARED = 32
"""How many sizes, those with the most bytes, are compared with one another."""
LEAST_EXPLAINED, NEARLY = 0.5, 0.9
"""Share of the large frames' bytes that are multiples of the size; of the best size's share."""
LEAST_SEEN = 0.01
"""Share of all frames that have a size which is a segment's."""


def likely_mss(frames: Counter[tuple[int, int]]) -> int:
    """The MSS that explains the sizes of a sender's frames; 0 where none does.

    ``frames`` counts them by the bytes of their TCP header and of their payload.
    """
    heads: Counter[int] = Counter()
    for (head, payload), count in frames.items():
        heads[head] += payload * count
    if not heads:
        return 0
    head = heads.most_common(1)[0][0]
    counts = {payload: count for (of, payload), count in frames.items() if of == head}
    large = Counter({size: size * n for size, n in counts.items() if size > USUAL_PAYLOAD})
    least = LEAST_SEEN * sum(counts.values())
    possible = {size for size, n in counts.items() if n >= least}
    possible |= {gcd(*pair) for pair in combinations(dict(large.most_common(COMPARED)), 2)}
    explained = {
        size: sum(n for whole, n in large.items() if whole % size == 0) / large.total()
        for size in possible
        if large and LEAST <= size <= LARGEST
    }
    for most in (USUAL_PAYLOAD, LARGEST):
        shares = {size: share for size, share in explained.items() if size <= most}
        best = max(shares.values(), default=0)
        if best >= LEAST_EXPLAINED:
            size = max(size for size, share in shares.items() if share >= NEARLY * best)
            return size + head - HEADER_BYTES
    return 0
