"""Run uqlm's black-box quantifier on a fake chat model: `uqlm_table.py FILE`.

Needs uqlm and torch. The grades are what a user adds to the table.
"""

import asyncio
import random
import sys

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from uqlm import BlackBoxUQ


class Chat(GenericFakeChatModel):
    """uqlm reads and sets the temperature of its model."""

    temperature: float = 1.0


def replies(rng):
    while True:
        yield AIMessage(content=rng.choice(["Paris", "Paris", "Paris", "Rome", "I think Rome"]))


def main(target):
    prompts = [f"Question {i}: what is the capital of France?" for i in range(30)]
    quantifier = BlackBoxUQ(
        llm=Chat(messages=replies(random.Random(2))), scorers=["exact_match"], use_best=False
    )
    result = asyncio.run(quantifier.generate_and_score(prompts=prompts, num_responses=5))
    frame = result.to_df()
    frame["response_correct"] = (frame["response"] == "Paris").astype(int)
    frame.to_csv(target, index=False)


if __name__ == "__main__":
    main(sys.argv[1])
