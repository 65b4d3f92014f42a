"""Findings of the published data: each holds, says one thing in few words, and has its parts."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import qbkit as qb
from qbkit.atlas.claims import ClaimError, findings
from qbkit.atlas.claims.findings import MOST_WORDS, Picture, bars, claim, read_findings
from qbkit.atlas.published import read_published
from qbkit.cli.group import group

DATA = Path(__file__).parents[1] / "data"
PARTS = "picture: {picture}\ncommand: qbkit doctor\n\nThe evidence.\n"


def written(words: str, parts: str = PARTS) -> str:
    return f"# Group\n\n## {words}\n{parts.format(picture=bars('share', {'a': 0.5}))}"


@pytest.fixture(scope="module")
def published():
    return findings(read_published(DATA))


@pytest.mark.slow
def test_each_finding_of_the_published_data_holds_and_is_short(published):
    assert len(published) >= 50
    assert max(len(each.claim.split()) for each in published) <= MOST_WORDS == 20
    assert len({each.anchor for each in published}) == len(published)
    assert all("nan" not in each.evidence + each.claim for each in published)


@pytest.mark.slow
def test_findings_are_about_implementations_of_the_data(published):
    specs = [*DATA.glob("conformance/*.yaml"), *DATA.glob("interactions/*.yaml")]
    known = {name for spec in specs for name in qb.Sweep.from_file(spec).sweep["flows.0"]}
    assert {name for each in published for name in each.about} <= known


@pytest.mark.slow
def test_the_commands_of_findings_exist(published):
    commands = {tuple(shlex.split(line)) for each in published for line in each.commands}
    for program, *words in commands:
        if program == "qbkit":
            assert CliRunner().invoke(group, [words[0], "--help"]).exit_code == 0, words
        else:
            assert program == "python"
            assert (DATA.parent / words[0]).exists(), words
        files = [word for word in words if word.startswith("data/")]
        assert all((DATA.parent / file).exists() for file in files), words


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
