"""Run lm-evaluation-harness on tiny local tasks: `lm_eval_run.py FOLDER`."""

import json
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

CHOICE = """
task: tiny_choice
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{folder}/choice.jsonl"}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}\\nAnswer:"
doc_to_choice: "{{{{options}}}}"
doc_to_target: "{{{{label}}}}"
metric_list:
  - {{metric: acc, aggregation: mean, higher_is_better: true}}
  - {{metric: acc_norm, aggregation: mean, higher_is_better: true}}
"""
OPEN = """
task: tiny_open
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{folder}/open.jsonl"}}}}
test_split: test
output_type: generate_until
repeats: 5
doc_to_text: "Q: {{{{question}}}}\\nA:"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n"], do_sample: true, temperature: 1.0}}
metric_list:
  - {{metric: exact_match, aggregation: mean, higher_is_better: true}}
filter_list:
  - {{name: first, filter: [{{function: take_first}}]}}
  - {{name: majority, filter: [{{function: majority_vote}}, {{function: take_first}}]}}
"""

# The strict answer is one part of a longer reply, as in word problems.
WORDED = """
task: tiny_worded
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{folder}/worded.jsonl"}}}}
test_split: test
output_type: generate_until
repeats: 4
doc_to_text: "Q: {{{{question}}}}\\nA:"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["Q:"], do_sample: true, temperature: 0.7}}
metric_list:
  - {{metric: exact_match, aggregation: mean, higher_is_better: true}}
filter_list:
  - name: strict
    filter:
      - {{function: regex, regex_pattern: "#### (-?[0-9]+)"}}
      - {{function: take_first}}
"""


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


def write_questions(folder):
    rng = random.Random(5)
    choice = [
        {
            "question": f"Which is item {i}?",
            "options": ["red", "green", "deep blue", "grey"],
            "label": rng.randrange(4),
        }
        for i in range(30)
    ]
    pairs = [(rng.randrange(50), rng.randrange(50)) for _ in range(20)]
    sums = [
        {"question": f"{a}+{b}", "sum": a + b, "answer": str(a + b), "worded": False}
        for a, b in pairs
    ]
    worded = [{**row, "worded": True} for row in sums]
    for name, rows in (("choice", choice), ("open", sums), ("worded", worded)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)


def main(target):
    # A fixed and neutral folder: its name is kept in the log.
    folder = Path(tempfile.gettempdir()) / "tiny-tasks"
    folder.mkdir(exist_ok=True)
    write_questions(folder)
    (folder / "choice.yaml").write_text(CHOICE.format(folder=folder))
    (folder / "open.yaml").write_text(OPEN.format(folder=folder))
    (folder / "worded.yaml").write_text(WORDED.format(folder=folder))
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
