"""The books that qbkit ships, and those in a user's files."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from qbkit.arguments import as_path
from qbkit.errors import SpecError
from qbkit.metrics.evaluation.measures import MEASURES
from qbkit.spec.book import Book, Scenario
from qbkit.spec.case_book import CaseBook
from qbkit.spec.spec_file import ENDINGS, of_file, read_fields
from qbkit.suggestions import did_you_mean

DRAFT = "bbr-draft"
BOOKS = ("rfc9743", DRAFT, "c4", "shares")


def open_book(name: str | Path) -> Book | CaseBook:
    """The book of that name, or in a file; SpecError for an unknown one.

    A file with ``cases`` is a book of test cases, any other one a book of questions.
    """
    path = as_path(name)
    if path.suffix not in ENDINGS:
        if str(name) not in BOOKS:
            near = did_you_mean(str(name), BOOKS)
            raise SpecError(
                f"there is no book {str(name)!r}{near}; there is {', '.join(BOOKS)}, or a YAML file"
            )
        return _shipped(str(name))
    return _read(path)


@cache
def _shipped(name: str) -> Book | CaseBook:
    return _read(Path(str(files("qbkit.studies.evaluation") / f"books/{name}.yaml")))


def _read(path: Path) -> Book | CaseBook:
    fields = read_fields(path, "a book")
    with of_file(path):
        return CaseBook(**fields) if "cases" in fields else Book(**fields)


def is_shipped(book: Book) -> bool:
    """Whether a book is one of `BOOKS`, and not a changed copy with its name."""
    return book.name in BOOKS and book == open_book(book.name)


def require_measures(book: Book | CaseBook) -> None:
    """Raise SpecError for a measure of a book that does not exist, or that is of nobody."""
    for place, scenario, name in _measured(book):
        if name not in MEASURES:
            near = did_you_mean(name, list(MEASURES))
            known = ", ".join(MEASURES)
            raise SpecError(f"{place} measures {name!r}{near}; choose from {known}")
        if not scenario.flows_of(MEASURES[name].of):
            raise SpecError(
                f"{place} measures {name!r}, which is of the other flows, and {scenario.name!r} "
                "has none; add one to flows"
            )


def _measured(book: Book | CaseBook) -> list[tuple[str, Scenario, str]]:
    """Each place of a book that measures, its scenario, and the name of the measure."""
    if isinstance(book, CaseBook):
        return [
            (f"case {case.number}", case.scenario, one.measure)
            for case in book.cases
            for one in case.expects
        ]
    return [
        (f"section {criterion.section}", scenario, name)
        for criterion, scenario in book.scenarios
        for name in scenario.measures
    ]
