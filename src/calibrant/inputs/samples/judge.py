"""A model that judges what rules leave open, while samples are clustered and graded."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.records.study import Study
from calibrant.semantics.options import Options

_SUFFIX = ".judge.sqlite"


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """Which model judges, where it is reached, and how often it may be asked at most.

    `model` may begin with the kind of endpoint: ``anthropic:NAME``, ``ollama:NAME``; without one
    it is an OpenAI-style endpoint at `url`.
    """

    model: str
    url: str | None = None
    most_calls: int | None = None

    @property
    def spec(self) -> dict[str, Any]:
        """The description that a client is opened by.

        Examples
        --------
        >>> JudgeChoice("ollama:qwen3").spec
        {'kind': 'ollama', 'model': 'qwen3'}
        """
        kind, _, name = self.model.partition(":")
        if not name or not _has_kind(self.model):
            kind, name = "openai", self.model
        spec: dict[str, Any] = {"kind": kind, "model": name}
        return spec if self.url is None else {**spec, "base_url": self.url}


_KINDS = ("openai", "anthropic", "gemini", "ollama", "vllm", "llamacpp", "embedded", "mistral")


def _has_kind(model: str) -> bool:
    return model.partition(":")[0] in _KINDS


@contextmanager
def judged_options(choice: JudgeChoice | None, ledger: Path | None) -> Iterator[Options | None]:
    """Yield options with the judge; every reply is kept in the ledger and never paid for twice.

    Parameters
    ----------
    choice
        The judge; None yields None, rules alone.
    ledger
        File of all replies.
    """
    if choice is None:
        yield None
        return
    if ledger is None:
        raise InputError(
            "a judge's replies are kept in a file, and tables in memory have no place for it",
            hint=Hint("write the table to a file, or use `calibrant grade` with {out}"),
        )
    # Loaded here: rules need nothing that talks to models.
    from calibrant.clients import Dispatcher
    from calibrant.clients.endpoints.factory import open_client
    from calibrant.records.ledger import Ledger
    from calibrant.semantics.llm_judge import DispatcherAsker, LLMJudge

    try:
        client = open_client(choice.spec)
    except InputError as error:
        told = f"judge {choice.model}"
        raise InputError(error.rule, source=told, hint=error.hint) from None
    ledger.parent.mkdir(parents=True, exist_ok=True)
    with Ledger(ledger) as kept:
        speaker = LLMJudge(DispatcherAsker(Dispatcher(client, kept)), choice.spec["model"])
        try:
            yield Options(judge=speaker, max_judge_calls=choice.most_calls)
        finally:
            # Connections live on the judge's own loop, so they are closed there.
            speaker.run(client.close())
            speaker.close()


def ledger_beside(data: Any) -> Path | None:
    """Return the file for a judge's replies: of a study its ledger, else one beside the file."""
    first = data[0] if isinstance(data, list | tuple) and data else data
    if not isinstance(first, str | Path):
        return None
    return Study(first).ledger_path if Study.is_study(first) else Path(f"{first}{_SUFFIX}")


def ledger_for(data: Any, out: str | Path | None) -> Path | None:
    """Return the ledger of the study `out`, with the replies that the input has already.

    A judge that `audit` has asked about a file is not asked again when `grade` makes it a study.
    """
    beside = ledger_beside(data)
    if out is None:
        return beside
    own = Study(out).ledger_path
    if beside is not None and beside.is_file() and not own.exists():
        own.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(beside)) as held, closing(sqlite3.connect(own)) as copy:
            held.backup(copy)
    return own
