"""LangChain: a chain that answers alone, or hands over, by a policy that `calibrant decide` saved.

    python examples/langchain_policy.py policy.json

The confidence is the mean token probability that the chat model returns (`logprobs=True` of most
OpenAI-compatible models). A recorded model stands in for a real one, so that this runs offline.
"""

import math
import sys

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

import calibrant as cal


def recorded(text, *logprobs):
    tokens = {"content": [{"token": "", "logprob": value} for value in logprobs]}
    return AIMessage(text, response_metadata={"logprobs": tokens})


def gated(policy):
    """Return a step that passes an answer on, or says who should be asked instead."""

    def step(message):
        content = (message.response_metadata.get("logprobs") or {}).get("content") or []
        if not content:
            return {"action": "ask", "why": "no log-probs", "answer": message.content}
        confidence = math.exp(sum(token["logprob"] for token in content) / len(content))
        action = policy.decide({"confidence": confidence})
        return {"action": action, "confidence": confidence, "answer": message.content}

    return RunnableLambda(step)


def main():
    policy = cal.load_policy(sys.argv[1])
    model = GenericFakeChatModel(
        messages=iter([recorded("Lima", -0.01, -0.02), recorded("Accra?", -2.5), AIMessage("?")])
    )
    chain = model | gated(policy)
    for question in ("Capital of Peru?", "Capital of Togo?", "Capital of Chad?"):
        print(question, chain.invoke(question))


if __name__ == "__main__":
    main()
