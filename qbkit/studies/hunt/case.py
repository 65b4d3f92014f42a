"""A finding of a hunt as a book of one question, which `qbkit evaluate` asks again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from qbkit.files import write_whole
from qbkit.metrics.evaluation.measures import MEASURES
from qbkit.spec.book import Book, Criterion, Scenario

if TYPE_CHECKING:
    from qbkit.studies.hunt.found import Hunt

SETTINGS = ("name", "flows", "network", "measures", "duration_s", "from_s", "quick")


def book_of(sender: str, reference: str, scenario: Scenario) -> Book:
    """The book that asks whether the sender is worse than the reference there."""
    return Book(
        name="hunt-" + "".join(c if c.isalnum() else "-" for c in sender.lower()),
        title=f"Where {sender} is at its worst",
        version=1,
        source="qbkit hunt",
        standards=(reference,),
        others=(),
        criteria=(
            Criterion(
                section="1",
                title=MEASURES[scenario.measures[0]].words.capitalize(),
                question=f"Is it worse than {reference} there?",
                scenarios=(scenario,),
            ),
        ),
    )


def write_case(hunt: Hunt, path: Path) -> None:
    """Write the book of a hunt as YAML, with what was found as comments."""
    import yaml

    criterion = hunt.book.criteria[0]
    [scenario] = criterion.scenarios
    asked = scenario.model_dump(mode="json", include=set(SETTINGS))
    document: dict[str, Any] = hunt.book.model_dump(mode="json", exclude={"criteria"})
    document["criteria"] = [
        {
            "section": criterion.section,
            "title": criterion.title,
            "question": criterion.question,
            "scenarios": [{name: asked[name] for name in SETTINGS}],
        }
    ]
    again = f"qbkit evaluate {hunt.sender} --book {path.name} --quick --seeds {hunt.seeds}"
    comments = [*str(hunt).splitlines(), "", "Again:", f"  {again}"]
    head = "".join(f"# {line}".rstrip() + "\n" for line in comments)
    body = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (head + body).encode())
