"""Tiny local tasks for lm-evaluation-harness, and their questions."""

import json
import random

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
  - metric: likelihood
    aggregation: !function calibrant.apps.integrations.lm_eval_metrics.option_softmax_ece
    higher_is_better: false
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

# All repeats go to the metric.
ALL = """
task: tiny_all
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{folder}/open.jsonl"}}}}
test_split: test
output_type: generate_until
repeats: 5
doc_to_text: "Q: {{{{question}}}}\\nA:"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n"], do_sample: true, temperature: 1.0}}
filter_list:
  - {{name: all, filter: [{{function: take_first_k, k: 5}}]}}
metric_list:
  - metric: !function calibrant.apps.integrations.lm_eval_metrics.consistency
    aggregation: !function calibrant.apps.integrations.lm_eval_metrics.aggregate
    higher_is_better: false
  - metric: !function calibrant.apps.integrations.lm_eval_metrics.consistency_auroc
    aggregation: !function calibrant.apps.integrations.lm_eval_metrics.aggregate
    higher_is_better: true
"""
TASKS = {"choice": CHOICE, "open": OPEN, "worded": WORDED, "all": ALL}


def write_tasks(folder):
    """Write the questions and one YAML file per task."""
    folder.mkdir(exist_ok=True)
    write_questions(folder)
    for name, text in TASKS.items():
        (folder / f"{name}.yaml").write_text(text.format(folder=folder))


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
