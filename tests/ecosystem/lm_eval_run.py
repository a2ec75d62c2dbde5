"""Run lm-evaluation-harness on tiny local tasks: `lm_eval_run.py FOLDER`."""

import os
import random
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")

from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager
from lm_eval_tasks import write_tasks


class SeededModel(LM):
    """Right more often than not; the same replies on every run."""

    def __init__(self):
        super().__init__()
        self.rng = random.Random(3)

    def loglikelihood(self, requests, disable_tqdm=False):
        return [(-self.rng.expovariate(0.5) * len(r.args[1]) / 4, False) for r in requests]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        raise NotImplementedError

    def generate_until(self, requests, disable_tqdm=False):
        return [self.reply(r.doc) for r in requests]

    def reply(self, doc):
        number = doc["sum"] + self.rng.choice([0, 0, 0, 1])
        if not doc["worded"]:
            return str(number)
        return f"Adding up ({self.rng.randrange(99)}) gives\n#### {number}"


def main(target):
    # A fixed and neutral folder: its name is kept in the log.
    folder = Path(tempfile.gettempdir()) / "tiny-tasks"
    write_tasks(folder)
    tracker = EvaluationTracker(output_path=target)
    tracker.general_config_tracker.model_name = "seeded"
    results = simple_evaluate(
        model=SeededModel(),
        tasks=["tiny_choice", "tiny_open", "tiny_worded"],
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        log_samples=True,
        evaluation_tracker=tracker,
        bootstrap_iters=0,
    )
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for task in results["configs"]:
        tracker.save_results_samples(task_name=task, samples=samples[task])


if __name__ == "__main__":
    main(sys.argv[1])
