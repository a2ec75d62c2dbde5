"""Old address of `calibrant.integrations.lm_eval_metrics`, kept until version 0.3."""

import sys
import warnings

from calibrant.integrations import lm_eval_metrics

warnings.warn(
    "calibrant.api.lm_eval_metrics has moved to calibrant.integrations.lm_eval_metrics",
    DeprecationWarning,
    stacklevel=2,
)
sys.modules[__name__] = lm_eval_metrics
