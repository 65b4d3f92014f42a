"""Reports of both kinds of book as files."""

from __future__ import annotations

from pathlib import Path

from qbkit.arguments import as_path
from qbkit.files import require_ending, write_whole, writing
from qbkit.studies.evaluation import case_pages, report
from qbkit.studies.evaluation.answers import Evaluation
from qbkit.studies.evaluation.judgements import CaseReport

KINDS = (".html", ".md", ".json")


def save_evaluation(evaluation: Evaluation | CaseReport, path: str | Path) -> Path:
    """Write an evaluation, or a report of cases, as ``.html``, ``.md`` or ``.json``, by the name.

    Returns its path. Raises StoreError for another name, and for a folder that cannot be written.
    """
    target = as_path(path)
    text = _text(evaluation, require_name(target))
    with writing(path):
        write_whole(target, text.encode())
    return target


def require_name(path: Path) -> str:
    """The kind of a report by its name; StoreError for a name that says none."""
    return require_ending(path, "an evaluation", KINDS)


def as_json(evaluation: Evaluation | CaseReport) -> str:
    """Either kind as a JSON document, with a newline at its end."""
    if isinstance(evaluation, CaseReport):
        return evaluation.to_json() + "\n"
    return report.as_json(evaluation)


def _text(evaluation: Evaluation | CaseReport, ending: str) -> str:
    if ending == ".json":
        return as_json(evaluation)
    if isinstance(evaluation, CaseReport):
        write = case_pages.page if ending == ".html" else case_pages.markdown
        return write(evaluation)
    return report.page(evaluation) if ending == ".html" else report.markdown(evaluation)
