"""Write ``fixtures/langchain.jsonl`` with langchain-core: runs that its tracer collected.

A chat model that answers by a rule stands in for a real one. What a person said of each answer is
in the metadata of the call, where a program that knows it puts it.
"""

import sys
from pathlib import Path

from cases import WITH_TOKENS, tokens_of
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler


def message(said, logs):
    about = {"model_name": "toy", "logprobs": {"content": tokens_of(said, logs)}}
    return AIMessage(said, response_metadata=about)


model = GenericFakeChatModel(messages=iter([message(c[1], c[4]) for c in WITH_TOKENS]))
chain = ChatPromptTemplate.from_messages([("human", "{question}")]) | model | StrOutputParser()
kept = RunCollectorCallbackHandler()
for asked, said, right, sure, _ in WITH_TOKENS:
    about = {"correct": said == right, **({} if sure is None else {"confidence": sure})}
    chain.invoke({"question": asked}, config={"callbacks": [kept], "metadata": about})


def with_children(run):
    yield run
    for child in run.child_runs:
        yield from with_children(child)


runs = [one for run in kept.traced_runs for one in with_children(run)]
Path(sys.argv[1]).write_text("".join(f"{run.model_dump_json()}\n" for run in runs))
