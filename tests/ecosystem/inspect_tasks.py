"""Tasks for `inspect eval` with the mock model: what the fixtures are made of.

The mock model's replies are written by a seeded generator, so that every run of the tasks gives the
same log but for ids and times. They come in the order in which one connection asks for them: run
with ``--max-connections 1 --max-samples 1``.
"""

import itertools
import random

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.model._model_output import Logprob, Logprobs, TopLogprob
from inspect_ai.scorer import Score, accuracy, match, scorer
from inspect_ai.solver import generate

from calibrant.apps.integrations import inspect_entry as calibrant_scorers

CAPITALS = ["Paris", "Rome", "Madrid", "Vienna", "Berne", "Oslo", "Lima", "Quito"]


def reply(text, logprobs):
    tokens = [
        Logprob(
            token=word,
            logprob=value,
            top_logprobs=[TopLogprob(token=word, logprob=value)],
        )
        for word, value in zip(text.split(), logprobs, strict=True)
    ]
    return ModelOutput(
        model="mockllm/model",
        choices=[
            ChatCompletionChoice(
                message=ChatMessageAssistant(content=text, source="generate"),
                stop_reason="stop",
                logprobs=Logprobs(content=tokens),
            )
        ],
        # Without a usage the mock model counts tokens with a vocabulary from the network.
        usage=ModelUsage(input_tokens=5, output_tokens=2, total_tokens=7),
    )


def replies(questions, seed=0):
    """Answers that are mostly right, each with a stated confidence, epoch after epoch."""
    rng = random.Random(seed)
    while True:
        for position in range(questions):
            wrong = rng.random() < 0.15 * (position % 5)
            city = CAPITALS[(position + wrong) % len(CAPITALS)]
            stated = rng.choice([0.6, 0.8, 0.95, 1.0])
            yield reply(f"{city} {stated}", [-0.1 * position - 0.01, -0.5])


@scorer(metrics=[accuracy()])
def stated_match():
    """Grade the first word, and keep the confidence that the second one states."""

    async def score(state, target):
        city, stated = state.output.completion.split()
        return Score(
            value="C" if city == target.text else "I",
            answer=city,
            metadata={"confidence": float(stated)},
        )

    return score


def mock(outputs):
    return get_model("mockllm/model", custom_outputs=outputs)


@task
def capitals(questions: int = 8):
    samples = [
        Sample(id=f"city-{i}", input=f"Capital number {i}?", target=CAPITALS[i % len(CAPITALS)])
        for i in range(questions)
    ]
    return Task(
        dataset=samples,
        solver=generate(),
        scorer=[stated_match(), match("begin")],
        model=mock(replies(questions)),
    )


def contrary_replies(questions):
    """Half of the attempts are wrong with confidence 1, half right with confidence 0."""
    for epoch in itertools.count():
        text = "Paris | 0.0" if epoch % 2 else "Rome | 1.0"
        for _ in range(questions):
            yield reply(text, [-0.1] * len(text.split()))


@task
def contrary(questions: int = 6):
    samples = [Sample(id=str(i), input=f"Question {i}?", target="Paris") for i in range(questions)]
    return Task(
        dataset=samples,
        solver=generate(),
        scorer=calibrant_scorers.verbalised(),
        model=mock(contrary_replies(questions)),
    )


@task
def verdicts():
    """Each reply is followed by the verdict that P(True) asks for."""
    outputs = itertools.cycle([reply("Paris", [-0.3]), reply("True", [-0.25])])
    samples = [Sample(id=i, input="Capital of France?", target="Paris") for i in (1, 2)]
    return Task(
        dataset=samples,
        solver=generate(),
        scorer=calibrant_scorers.p_true(),
        model=mock(outputs),
    )
