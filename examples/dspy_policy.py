"""DSPy: a program that answers alone, or hands over, by a policy that `calibrant decide` saved.

    python examples/dspy_policy.py policy.json

The signature asks for a confidence beside the answer. A recorded model stands in for a real one.
"""

import sys

import dspy
from dspy.utils import DummyLM

import calibrant as cal


class Gated(dspy.Module):
    """Answer where the policy allows it."""

    def __init__(self, policy):
        super().__init__()
        self.policy = policy
        self.answer = dspy.Predict("question -> answer: str, confidence: float")

    def forward(self, question):
        said = self.answer(question=question)
        action = self.policy.decide({"confidence": min(max(float(said.confidence), 0.0), 1.0)})
        return dspy.Prediction(action=action, answer=said.answer, confidence=said.confidence)


def main():
    replies = [{"answer": "Lima", "confidence": "0.97"}, {"answer": "Accra", "confidence": "0.1"}]
    dspy.configure(lm=DummyLM(replies))
    program = Gated(cal.load_policy(sys.argv[1]))
    for question in ("Capital of Peru?", "Capital of Togo?"):
        found = program(question=question)
        print(question, {"action": found.action, "answer": found.answer})


if __name__ == "__main__":
    main()
