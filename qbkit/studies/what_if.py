"""What if the suspect were changed? Run a study again with options of the test set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from qbkit import plots, stacks
from qbkit.errors import SpecError
from qbkit.metrics import Assessment, envelope
from qbkit.metrics.envelopes.envelope import require_hull
from qbkit.store.published import without_tables
from qbkit.studies.cause_words import accounts_text
from qbkit.studies.conformance import Study, study_with
from qbkit.studies.explanation import ln_ratio, observed_ln_ratio

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, repr=False)
class WhatIf:
    """A study before and after options of the test were changed."""

    before: Study
    after: Study
    options: Mapping[str, Any]
    definition: str = "imc22"

    @cached_property
    def assessments(self) -> tuple[Assessment, Assessment]:
        """Assessments before and after the change."""
        return self.before.assess(definition=self.definition), self.after.assess(
            definition=self.definition
        )

    @property
    def sentence(self) -> str:
        """The conformance before and after the change, and the change's share, in one sentence."""
        before, after = self.assessments
        accounts = "" if math.isnan(self.share) else f"; it {accounts_text(self.share)}"
        return (
            f"{self._change} the conformance of {self.before.test} goes from "
            f"{before.conformance:.2f} to {after.conformance:.2f}"
            f" (noise floor {after.noise_floor:.2f}){accounts}."
        )

    @property
    def share(self) -> float:
        """The measured part of the difference in throughput that the change removes.

        As ln of ratios of throughputs, so that it compares with `Explanation.share`. NaN if the
        throughputs were not shown to differ before.
        """
        observed = observed_ln_ratio(self.before, self.assessments[0])
        return (ln_ratio(self.before.tests) - ln_ratio(self.after.tests)) / observed

    def chart(self) -> alt.HConcatChart:
        """Both envelopes, before and after (IMC'22, Figures 6 and 7)."""
        sides = {
            title: (
                {
                    self.before.test: envelope(study.tests, definition=self.definition),
                    study.reference: envelope(study.references, definition=self.definition),
                },
                assessment,
            )
            for title, study, assessment in zip(
                ("As it is", self._change), (self.before, self.after), self.assessments, strict=True
            )
        }
        return plots.what_if_chart(sides, reference=self.before.reference)

    def frame(self) -> pd.DataFrame:
        """One row per number of the assessments, before and after the change."""
        tables = [assessment.frame() for assessment in self.assessments]
        before, after = (table["value"] for table in tables)
        return tables[0][["metric", "unit"]].assign(**{"As it is": before, self._change: after})

    @property
    def _change(self) -> str:
        return "With " + ", ".join(f"{k} = {v}" for k, v in self.options.items())

    def __repr__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        table = self.frame().to_html(index=False, float_format="{:.3f}".format)
        return f"<p><b>{escape(self.sentence)}</b></p>{table}"


def what_if(
    study: Study,
    options: Mapping[str, Any],
    *,
    engine: str | None = None,
    scheduler: str | None = None,
    progress: bool = False,
) -> WhatIf:
    """Run a study again with options of the test's stack set (`qb.list_stacks` lists them).

    A published study has no packets; its runs are then compared with new ones as these would be
    published, so that both sides are measured alike.

    ``scheduler`` is the address of a Dask scheduler, as for `qbkit.run_all`. Raises SpecError for a
    study of captures and for an option that the stack does not have, and what `conformance_study`
    raises.
    """
    spec = study.tests[0].qb.experiment
    if spec is None:
        raise SpecError("a study of captures cannot be run again; give a study of experiments")
    flow = spec.flows[0]
    if not options:
        raise SpecError("there is no option to change; name one and its value")
    stacks.get(flow.stack).check(flow.controller, options, flow.source)
    changed = flow.model_copy(update={"options": {**flow.options, **options}})
    require_hull("imc22", spec.duration_s, spec.bottleneck.rtt_ms)
    after = study_with(study, changed, engine=engine, scheduler=scheduler, progress=progress)
    if any("packet_time_s" not in run for run in (*study.tests, *study.references)):
        tests, references = ([*map(without_tables, s)] for s in (after.tests, after.references))
        after = Study(after.test, after.reference, tests, references)
    return WhatIf(study, after, options)
