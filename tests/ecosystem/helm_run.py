"""Write a HELM run folder with HELM's own classes and serialiser: `helm_run.py FOLDER`.

HELM's runner needs torch; its data classes do not. The files are written as its runner does.
"""

import json
import random
import sys
from pathlib import Path

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Input, Instance, Output, Reference
from helm.common.general import asdict_without_nones
from helm.common.request import GeneratedOutput, Request, RequestResult, Token


def main(folder):
    rng = random.Random(11)
    states, stats = [], []
    for i in range(12):
        options = [
            Reference(Output(text=str(n)), tags=[CORRECT_TAG] if n == i else []) for n in (i, i + 1)
        ]
        instance = Instance(Input(text=f"{i} + 0 ="), references=options, split="test", id=f"id{i}")
        letter, logprob = rng.choice("AAB"), -rng.random()
        token = Token(text=letter, logprob=logprob)
        result = RequestResult(
            success=True,
            cached=False,
            completions=[GeneratedOutput(text=letter, logprob=logprob, tokens=[token])],
            embedding=[],
        )
        request = Request(
            model="seeded/small", model_deployment="seeded/small", prompt=f"{i} + 0 ="
        )
        states.append(
            RequestState(
                instance, None, None, 0, {"A": str(i), "B": str(i + 1)}, request, result, 0, False
            )
        )
        grade = Stat(MetricName("exact_match", split="test")).add(float(letter == "A"))
        # HELM's own PerInstanceStats lives in a module that needs torch; the fields are its.
        stats.append(
            {
                "instance_id": instance.id,
                "train_trial_index": 0,
                "stats": [asdict_without_nones(grade)],
            }
        )
    spec = AdapterSpec(method="multiple_choice_joint", model="seeded/small")
    scenario = ScenarioState(spec, states)
    run = {"name": "sums:model=seeded_small", "adapter_spec": asdict_without_nones(spec)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {
        "run_spec.json": run,
        "scenario_state.json": asdict_without_nones(scenario),
        "per_instance_stats.json": stats,
    }.items():
        (folder / name).write_text(json.dumps(content, indent=2))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
