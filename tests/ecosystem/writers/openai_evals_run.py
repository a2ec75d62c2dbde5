"""Write ``fixtures/openai_evals.jsonl`` with OpenAI's evals (3.0): its match eval, no model."""

import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OPENAI_API_KEY", "none")

import evals
from evals.base import RunSpec
from evals.elsuite.basic.match import Match
from evals.record import LocalRecorder, record_sampling
from evals.registry import Registry

ANSWERS = {"2+2": "4", "3+3": "6", "5+4": "9", "7+6": "14", "8+8": "about 17", "9+3": "12"}
RIGHT = {"2+2": "4", "3+3": "6", "5+4": "9", "7+6": "13", "8+8": "16", "9+3": "12"}
SURE = {"2+2": 0.9, "3+3": 0.85, "5+4": 0.8, "7+6": 0.6, "8+8": 0.55, "9+3": 0.7}


class Result:
    def __init__(self, text):
        self.text = text

    def get_completions(self):
        return [self.text]


class Toy:
    """Answers by a rule, and records how sure it is, as a completion function may."""

    def __call__(self, prompt, **_):
        asked = prompt[-1]["content"]
        record_sampling(prompt=prompt, sampled=[ANSWERS[asked]], confidence=SURE[asked])
        return Result(ANSWERS[asked])


with tempfile.TemporaryDirectory() as folder:
    samples = Path(folder) / "samples.jsonl"
    lines = [
        evals.data.jsondumps({"input": [{"role": "user", "content": asked}], "ideal": RIGHT[asked]})
        for asked in ANSWERS
    ]
    samples.write_text("\n".join(lines) + "\n")
    described = RunSpec(["toy"], "sums.dev.v0", "sums", "dev", {"command": "oaieval"}, "")
    target = Path(sys.argv[1])
    recorder = LocalRecorder(str(target), run_spec=described)
    os.environ["EVALS_SEQUENTIAL"] = "1"
    run = Match(
        completion_fns=[Toy()],
        samples_jsonl=str(samples),
        eval_registry_path=Path(folder),
        registry=Registry(),
    )
    report = run.run(recorder)
    recorder.record_final_report(report)
    recorder.flush_events()
