"""Old address of `calibrant.integrations.lm_eval_metrics`, kept until version 0.3."""

import sys

from calibrant.integrations import lm_eval_metrics

sys.modules[__name__] = lm_eval_metrics
