"""How far can you trust what a model says about its own certainty?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.core.version import __version__ as __version__

if TYPE_CHECKING:
    from calibrant import answers as answers
    from calibrant import comparison as comparison
    from calibrant import data as data
    from calibrant import findings as findings
    from calibrant import labels as labels
    from calibrant import metrics as metrics
    from calibrant import models as models
    from calibrant import report as report
    from calibrant import trust as trust
    from calibrant.apps.integrations.pytest_plugin import assert_calibrated as assert_calibrated
    from calibrant.apps.trusted import trusted as trusted
    from calibrant.apps.view import view as view
    from calibrant.bench.evaluate import bench_evaluate as bench_evaluate
    from calibrant.bench.make import bench_check as bench_check
    from calibrant.bench.make import bench_mace as bench_mace
    from calibrant.core.arrays import Estimate as Estimate
    from calibrant.core.errors import CalibrantError as CalibrantError
    from calibrant.core.errors import ClaimFailed as ClaimFailed
    from calibrant.core.errors import InputError as InputError
    from calibrant.core.errors import MissingDependencyError as MissingDependencyError
    from calibrant.core.errors import SchemaError as SchemaError
    from calibrant.data.mend import Mend as Mend
    from calibrant.data.recalibration_map import load_mend as load_mend
    from calibrant.report.result import Result as Result
    from calibrant.trust import load_policy as load_policy
    from calibrant.verbs.audit import audit as audit
    from calibrant.verbs.cascade import cascade as cascade
    from calibrant.verbs.compare import compare as compare
    from calibrant.verbs.decide import decide as decide
    from calibrant.verbs.grade import grade as grade
    from calibrant.verbs.groups import groups as groups
    from calibrant.verbs.import_logs import import_logs as import_logs
    from calibrant.verbs.judge import judge as judge
    from calibrant.verbs.label import label_add as label_add
    from calibrant.verbs.label import label_export as label_export
    from calibrant.verbs.label import label_next as label_next
    from calibrant.verbs.label import label_serve as label_serve
    from calibrant.verbs.label import label_status as label_status
    from calibrant.verbs.mend import mend as mend
    from calibrant.verbs.methods import methods as methods
    from calibrant.verbs.monitor import monitor as monitor
    from calibrant.verbs.opening.open_input import read as read
    from calibrant.verbs.plan import plan as plan
    from calibrant.verbs.run import arun as arun
    from calibrant.verbs.run import run as run
    from calibrant.verbs.write_report import write_report as write_report
else:
    # Imported on first use: auditing a table never loads code that talks to models.
    from calibrant.core.names import lazy_exports

    __getattr__, __dir__, __all__ = lazy_exports(__name__)
