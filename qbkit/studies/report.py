"""A report of results as one HTML file that opens without a network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path

import pandas as pd
import xarray as xr

from qbkit.arguments import as_path
from qbkit.errors import QbkitError
from qbkit.files import require_ending, write_whole, writing
from qbkit.metrics.verdicts.reasons import sentence
from qbkit.plots.drawing.html import run_html, run_sentence
from qbkit.plots.drawing.render import page_fragment, without_bundle
from qbkit.store.faults import faults_html
from qbkit.store.paper_tables import heading
from qbkit.studies.conformance import Study
from qbkit.studies.explanation import Explanation
from qbkit.studies.results import Results, figure, is_cube, kinds_of, require_results, table

STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #1f2933; --quiet: #52606d;
  --line: #e4e7eb; --accent: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --ground: #14181d; --ink: #e3e8ed; --quiet: #aeb9c4;
  --line: #323b44; --accent: #7cc4f0; } }
body { --jp-content-font-color1: var(--ink); --jp-content-font-color2: var(--quiet);
  --jp-border-color2: var(--line); --jp-layout-color1: var(--ground);
  --jp-layout-color2: var(--line); }
body { font: 14px/1.5 Arial, "Liberation Sans", sans-serif; color: var(--ink);
  background: var(--ground); max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
a { color: var(--accent); }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
.verdict { font-size: 1.1em; border-left: 4px solid var(--accent); padding-left: 0.8em; }
.scroll, .verdict { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9em; margin: 0.6em 0; }
th, td { text-align: left; padding: 0.2em 0.9em 0.2em 0; border-bottom: 1px solid var(--line); }
td:first-child { white-space: nowrap; }
details pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.85em; }
"""
FACTS = ("engine", "qbkit_version", "kernel_version", "stack_versions", "created", "hash")
MAP_ROWS = 400
NO_PARAMETERS = (
    "<p>Not in these results: they hold no runs of each side alone. "
    "<code>qbkit conformance --explain</code> runs them, and <code>qb.publish_explanation</code> "
    "stores them with the study.</p>"
)

Section = tuple[str, str]


def save_report(results: Results, path: str | Path) -> Path:
    """Write one HTML file with everything that results say, and return its path.

    A study's report has the verdict, the envelope, the timeline, inferred parameters and suspects
    (if the results are an `Explanation`), and the provenance of every run; a run's and a sweep's
    have what applies. The page contains its charts and loads nothing. It is written atomically.
    Raises StoreError for a name that does not end in ``.html``, and for a folder that cannot be
    written.
    """
    require_results(results)
    target = as_path(path)
    require_ending(target, "a report", (".html",))
    title, sections = _title(results), []
    drawn = False
    for name, html in _sections(results):
        # All charts of a page share the first one's copy of Vega.
        sections.append(f"<h2>{escape(name)}</h2>{without_bundle(html) if drawn else html}")
        drawn = drawn or "qbkit-chart" in html
    with writing(path):
        write_whole(target, html_page(title, STYLE, "".join(sections)).encode())
    return target


def html_page(title: str, style: str, body: str) -> str:
    """A whole page with its title above the ``body``, which is HTML."""
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body><h1>{escape(title)}</h1>{body}</body></html>"
    )


def _title(results: Results) -> str:
    study = results.study if isinstance(results, Explanation) else results
    if isinstance(study, Study):
        return f"{study.test} against {study.reference}"
    if is_cube(study):
        return f"Sweep {json.loads(study.attrs['sweep'])['name']}"
    return " and ".join(str(label) for label in study["label"].values)


def _sections(results: Results) -> Iterator[Section]:
    study = results.study if isinstance(results, Explanation) else results
    if isinstance(study, Study):
        yield from _study_sections(results, study)
    elif is_cube(study):
        yield from _charts(study)
        yield "Cells", _html(table(study))
        yield "Provenance", _provenance({"sweep": study})
    else:
        yield "Summary", run_html(study)
        yield from _charts(study)
        yield "Provenance", _provenance({"run": study})


def _study_sections(results: Results, study: Study) -> Iterator[Section]:
    assessment = study.assess()
    verdict = results.verdict if isinstance(results, Explanation) else study.verdict()
    yield (
        "Verdict",
        f'<div class="verdict">{assessment.html(verdict, faults_html(study.faults))}</div>'
        f"<p>{escape(run_sentence(study.tests[0], of_one_run=False))}; {len(study.tests)} and "
        f"{len(study.references)} trials.</p>",
    )
    yield from _charts(study, {"envelope": "Envelope", "linked": "Timeline"})
    if isinstance(results, Explanation):
        yield "Suspects", f"<p>{escape(sentence(results.reasons))}</p>"
        yield "Parameters", _html(table(results))
    else:
        yield "Parameters and suspects", NO_PARAMETERS
    sides = {"test": study.tests, "reference": study.references}
    runs = {f"{side} {n}": run for side, each in sides.items() for n, run in enumerate(each, 1)}
    yield "Provenance", _provenance(runs)


def _charts(results: Results, headings: dict[str, str] | None = None) -> Iterator[Section]:
    """Each chart (by default all that the results have), and once why others are not drawn."""
    reasons: dict[str, list[str]] = {}
    for kind in headings or kinds_of(results):
        name = (headings or {}).get(kind, kind.replace("-", " ").capitalize())
        try:
            yield name, page_fragment(figure(results, kind).to_dict(validate=False))
        except QbkitError as error:
            reasons.setdefault(str(error), []).append(name.lower())
    if reasons:
        lines = (f"{', '.join(names)}: {why}." for why, names in reasons.items())
        yield "Not drawn", "".join(f"<p>{escape(line)}</p>" for line in lines)


def _html(frame: pd.DataFrame) -> str:
    shown = frame.head(MAP_ROWS).rename(columns=lambda name: heading(str(name)))
    more = f"<p>and {len(frame) - MAP_ROWS} more rows</p>" if len(frame) > MAP_ROWS else ""
    with pd.option_context("display.max_colwidth", None):
        html = shown.to_html(index=False, border=0, float_format="{:.3g}".format, na_rep="–")
    return f'<div class="scroll">{html}</div>{more}'


def _provenance(runs: dict[str, xr.Dataset]) -> str:
    """What each dataset says of its origin: versions, kernel, seed, and the experiment itself."""
    parts = []
    for name, ds in runs.items():
        facts = {fact: str(ds.attrs[fact]) for fact in (*FACTS, "seed") if fact in ds.attrs}
        rows = "".join(f"<tr><td>{k}</td><td>{escape(v)}</td></tr>" for k, v in facts.items())
        spec = escape(str(ds.attrs.get("spec") or ds.attrs.get("sweep", "")))
        parts.append(
            f"<details><summary>{escape(name)}</summary><table>{rows}</table><pre>{spec}</pre></details>"
        )
    return "".join(parts)
