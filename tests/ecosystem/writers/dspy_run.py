"""Write ``fixtures/dspy.json`` with DSPy: `dspy.Evaluate(.., save_as_json=..)`, a recorded LM."""

import sys

import dspy
from cases import CASES
from dspy.utils import DummyLM

replies = [{"answer": said, "confidence": str(sure or 0.5)} for _, said, _, sure in CASES]
dspy.configure(lm=DummyLM(replies))
program = dspy.Predict("question -> answer: str, confidence: float")
asked = [dspy.Example(question=q, answer=right).with_inputs("question") for q, _, right, _ in CASES]


def answer_exact_match(example, prediction, trace=None):
    return example.answer == prediction.answer


dspy.Evaluate(devset=asked, metric=answer_exact_match, num_threads=1, save_as_json=sys.argv[1])(
    program
)
