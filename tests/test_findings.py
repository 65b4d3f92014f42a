"""Findings: each holds, says one thing in few words, and has its parts.

Those of the published data are checked where their site is built (tests/test_docs.py).
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from qbkit.atlas.claims import ClaimError, findings
from qbkit.atlas.claims.findings import Picture, bars, claim, read_findings

PARTS = "picture: {picture}\ncommand: qbkit doctor\n\nThe evidence.\n"


def written(words: str, parts: str = PARTS) -> str:
    return f"# Group\n\n## {words}\n{parts.format(picture=bars('share', {'a': 0.5}))}"


def test_a_finding_has_its_parts():
    (found,) = read_findings(written("quinn's `bbr` is first."))
    assert (found.group, found.claim) == ("Group", "quinn's `bbr` is first.")
    assert (found.commands, found.evidence) == (("qbkit doctor",), "The evidence.")
    assert found.picture.rows == {"a": 0.5}


def test_a_claim_of_more_than_twenty_words_is_refused():
    assert read_findings(written("word " * 20))
    with pytest.raises(ClaimError, match="has 21 words; say it in 20"):
        read_findings(written("word " * 21))


@pytest.mark.parametrize("part", ["picture", "command", "The evidence."])
def test_a_finding_that_lacks_a_part_is_refused(part):
    parts = "\n".join(line for line in PARTS.split("\n") if not line.startswith(part))
    with pytest.raises(ClaimError, match="lacks its picture, its command or its evidence"):
        read_findings(written("quinn is first.", parts))


def test_a_claim_that_the_data_contradict_is_refused():
    assert claim("quinn is first", [1]) == "quinn is first"
    with pytest.raises(ClaimError, match="contradict “quinn is first”; change the sentence"):
        claim("quinn is first", [])


def test_bars_have_zero_and_the_mark_on_their_scale():
    picture = Picture("", {"a": -2.0, "b": 6.0}, mark=8.0)
    assert [picture.zero, picture.percent(6.0), picture.percent(8.0)] == [20.0, 80.0, 100.0]
    assert json.loads(bars("share", {"a": 1}, 1, 0.5)) == ["share", {"a": 1.0}, 1, 0.5]


def test_a_folder_without_findings_has_none(tmp_path):
    assert findings(SimpleNamespace(folder=tmp_path)) == []
