# The public names of qbkit, and the module of each.
#
# A verb means the same everywhere: `run` executes, `load` and `save` are for qbkit's own files,
# `list` returns a table, `publish` writes for others what `load` opens again, and `read` is for the
# file formats of others.

# Specs: what to run.
from .spec.bottleneck import Bottleneck as Bottleneck
from .spec.experiment import Experiment as Experiment
from .spec.flow import Flow as Flow
from .spec.loss import GilbertElliott as GilbertElliott
from .spec.loss import TimedBursts as TimedBursts
from .spec.sweep import Sweep as Sweep
from .spec.web import WebLoad as WebLoad

# Execute them.
from .execution.runner import run as run
from .execution.many import run_all as run_all
from .execution.sweeps import run_sweep as run_sweep
from .execution.web.load import WebOutcome as WebOutcome
from .execution.web.urls import measure_urls as measure_urls
from .execution.web.load import run_web as run_web
from .execution.web.load import run_web_all as run_web_all

# Runs on disk.
from .store.datasets import list_runs as list_runs
from .store.datasets import load_run as load_run
from .store.datasets import save_run as save_run

# Published runs and sweeps.
from .store.published import load_runs as load_runs
from .store.published import publish_runs as publish_runs
from .store.published import load_sweep as load_sweep
from .execution.sweeps import publish_sweep as publish_sweep
from .store.tables import load_tables as load_tables
from .store.tables import publish_tables as publish_tables

# Studies: questions asked of many runs.
from .studies.conformance import Study as Study
from .studies.conformance import conformance_study as conformance_study
from .studies.conformance import load_study as load_study
from .studies.conformance import publish_study as publish_study
from .studies.explain import explain as explain
from .studies.explain import load_explanation as load_explanation
from .studies.explain import publish_explanation as publish_explanation
from .studies.explanation import Explanation as Explanation
from .studies.what_if import WhatIf as WhatIf
from .studies.what_if import what_if as what_if
from .studies.bisection.bisect import Bisection as Bisection
from .studies.bisection.bisect import bisect as bisect
from .studies.fair_queuing import FairQueuing as FairQueuing
from .studies.fair_queuing import detect_fair_queuing as detect_fair_queuing
from .studies.fair_queuing import fair_queuing_of as fair_queuing_of
from .studies.evaluation.answers import Evaluation as Evaluation
from .studies.evaluation.judgements import CaseReport as CaseReport
from .studies.evaluation.cases import judge_cases as judge_cases
from .studies.evaluation.evaluate import evaluate as evaluate
from .studies.evaluation.evaluate import load_evaluation as load_evaluation
from .studies.evaluation.saving import save_evaluation as save_evaluation
from .studies.replay import Replay as Replay
from .studies.replay import replay as replay
from .studies.replay_on_click import ReplayOnClick as ReplayOnClick
from .studies.hunt.found import Hunt as Hunt
from .studies.hunt.hunt import hunt as hunt
from .studies.identify import Identification as Identification
from .studies.identify import identify as identify
from .studies.race import Race as Race
from .studies.race import race as race

# Parameters to choose in a notebook.
from .studies.explorer import Explorer as Explorer
from .studies.explorer import explore as explore

# Figures, tables and reports of results that exist.
from .studies.compare import Comparison as Comparison
from .studies.compare import compare as compare
from .studies.report import save_report as save_report
from .studies.results import open_results as open_results
from .store.paper_tables import save_table as save_table

# Readers of captures and logs; `flow_events` returns the events of a run in the same form.
from .traces.run.imported import read_pcaps as read_pcaps
from .traces.logs.capture import read_capture as read_capture
from .traces.logs.any_log import read_log as read_log
from .traces.logs.netlog import read_netlog as read_netlog
from .traces.logs.qlog import read_qlog as read_qlog
from .traces.logs.run_flow import flow_events as flow_events

# Stacks and their controllers as tables.
from .stacks.about.listing import list_implementations as list_implementations
from .stacks.about.listing import list_stacks as list_stacks

# Controllers in Python.
from .cca.own.registry import controller as controller

# Packages with public names of their own.
from . import cca as cca
from . import metrics as metrics
from . import plots as plots
from . import stacks as stacks

# Errors.
from .errors import EngineError as EngineError
from .errors import MetricError as MetricError
from .errors import MissingExtra as MissingExtra
from .errors import QbkitError as QbkitError
from .errors import RunFailed as RunFailed
from .errors import RunStalled as RunStalled
from .errors import SpecError as SpecError
from .errors import StackNotReady as StackNotReady
from .errors import StoreError as StoreError
from .errors import TraceError as TraceError

__version__: str
