"""Write ``fixtures/lighteval/`` with LightEval (0.13): its tracker and metrics, seeded replies.

Needs lighteval with torch. Two tasks: options with log-likelihoods, and written answers.
"""

import random
import sys

from lighteval.logging.evaluation_tracker import EvaluationTracker
from lighteval.metrics.metrics import Metrics
from lighteval.models.dummy.dummy_model import DummyModelConfig
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

draw = random.Random(0)
tracker = EvaluationTracker(output_dir=sys.argv[1], save_details=True)
tracker.general_config_logger.log_model_info(DummyModelConfig(model_name="toy/tiny"))
OPTIONS = [" red", " green", " blue", " yellow"]


def log(task, doc, reply, metric):
    held = getattr(Metrics, metric).value
    scored = held.compute_sample(doc=doc, model_response=reply)
    scored = {name: float(value) for name, value in scored.items()}
    tracker.details_logger.log(task, doc, reply, scored)
    tracker.metrics_logger.log(task, scored)


for place in range(12):
    doc = Doc(
        query=f"Which colour has sign {place}?",
        choices=OPTIONS,
        gold_index=place % 4,
        id=str(place),
        task_name="colours",
    )
    logs = [draw.gauss(-3, 1) for _ in OPTIONS]
    logs[place % 4] += 1.0
    reply = ModelResponse(
        logprobs=logs,
        argmax_logits_eq_gold=[value == max(logs) for value in logs],
        output_tokens=[[1], [2], [3], [4]],
        input_tokens=[1, 2, 3],
    )
    log("colours", doc, reply, "loglikelihood_acc")
for place in range(6):
    doc = Doc(
        query=f"{place}+{place}=",
        choices=[str(2 * place)],
        gold_index=0,
        id=str(place),
        task_name="sums",
    )
    said = str(2 * place + (place == 4))
    reply = ModelResponse(text=[said], output_tokens=[[5]], input_tokens=[1, 2])
    log("sums", doc, reply, "exact_match")
tracker.details_logger.aggregate()
tracker.save()
