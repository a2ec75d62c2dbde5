"""Run HELM's own runner on its simple multiple-choice scenario: `helm_run.py FOLDER`.

Needs crfm-helm with torch. HELM's client for debugging repeats the prompt; here it answers from a
seeded generator instead, mostly right, with a log-probability. Everything else is HELM's.
"""

import hashlib
import os
import random
import re
import shutil
import sys
import tempfile
from pathlib import Path

from helm.benchmark.run import main as run_helm
from helm.clients.simple_client import SimpleClient
from helm.common.request import GeneratedOutput, RequestResult, Token

FILES = ("run_spec.json", "scenario_state.json", "per_instance_stats.json")


def answer(_, request):
    # Requests come from several threads, in any order: the prompt alone decides.
    seed = int(hashlib.sha256(request.prompt.encode()).hexdigest(), 16)
    rng = random.Random(seed)
    number = int(re.findall(r"Is (\d+) even", request.prompt)[-1])
    right = number % 2 if rng.random() < 0.7 else 1 - number % 2
    token = Token(text=" AB"[1 + right], logprob=-rng.random())
    output = GeneratedOutput(text=token.text, logprob=token.logprob, tokens=[token])
    return RequestResult(
        success=True,
        cached=False,
        request_time=0.0,
        request_datetime=0,
        completions=[output],
        embedding=[],
    )


def main(target):
    SimpleClient.make_request = answer
    folder = Path(tempfile.mkdtemp())
    os.chdir(folder)
    sys.argv = ["helm-run", "--run-entries", "simple_mcqa:model=simple/model1", "--suite", "s"]
    sys.argv += ["--max-eval-instances", "12", "--disable-cache", "--local-path", str(folder)]
    run_helm()
    (run,) = (folder / "benchmark_output" / "runs" / "s").glob("simple_mcqa*")
    target.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copy(run / name, target / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
