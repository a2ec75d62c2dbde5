"""From wanted probes to requests: each asked once and shared by all methods."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from calibrant.core.errors import InputError
from calibrant.models.asks import Ask, Price
from calibrant.models.protocol import Capabilities, Client, Message, Request
from calibrant.models.study.config import ModelConfig, StudyConfig
from calibrant.models.study.probes import PROBES, TOP_TOKENS, Probe
from calibrant.models.study.prompts import Prompt, PromptBook, lettered, listed

KINDS = ("open", "choice", "number", "binary")
_refused = partial(InputError, source="questions")


class PlannedQuestion(Struct, frozen=True):
    """One row of the questions table, as far as asking needs it."""

    question_id: str
    text: str
    kind: str = "open"
    choices: tuple[str, ...] = ()
    turns: tuple[Message, ...] = ()
    """The conversation whose last turn is the question; it may hold images."""


def iterate_questions(frame: pl.DataFrame) -> Iterator[PlannedQuestion]:
    """Yield the rows of a questions table."""
    target = ("question_id", "text", "kind", "choices", "messages")
    columns = [name for name in target if name in frame.columns]
    for number, row in enumerate(frame.select(columns).iter_rows(named=True), 1):
        kind = row.get("kind") or ("choice" if row.get("choices") else "open")
        if kind not in KINDS:
            raise _refused(f"kind is one of {', '.join(KINDS)}, got {kind!r}", row=number)
        turns = _turns(row.get("messages"), number)
        choices = tuple(row.get("choices") or ())
        yield PlannedQuestion(row["question_id"], row["text"], kind, choices, turns)


def _turns(messages: str | None, number: int) -> tuple[Message, ...]:
    if messages is None:
        return ()
    try:
        turns = msgspec.json.decode(messages, type=tuple[Message, ...])
    except msgspec.DecodeError as error:
        rule = f"messages is a list of turns with role and content: {error}"
        raise _refused(rule, row=number) from None
    if not turns or turns[-1].role != "user":
        raise _refused("the last of messages is what the user asks", row=number)
    return turns


def with_turns(prompt: tuple[Message, ...], turns: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return a prompt inside a conversation: what was said before it, and images beside it."""
    if not turns:
        return prompt
    images = [part for part in turns[-1].parts if "text" not in part]
    request = Message("user", [*prompt[-1].parts, *images]) if images else prompt[-1]
    return (*prompt[:-1], *turns[:-1], request)


class Wanted(Struct, frozen=True):
    """How many draws of each probe are wanted, which of them with token log-probs, and which
    with alternatives of every token.

    `judge_samples` puts the most frequent sampled answers into the pool of candidates.

    Examples
    --------
    >>> Wanted({"samples": 8}).draws["samples"]
    8
    """

    draws: Mapping[str, int]
    logprobs: frozenset[str] = frozenset()
    top: frozenset[str] = frozenset()
    judge_samples: bool = False

    def probes(self, turn: int) -> list[Probe]:
        """Return the wanted probes of a turn in the order of `PROBES`."""
        return [item for item in PROBES.values() if item.name in self.draws and item.turn == turn]

    def in_sending_order(self, turn: int) -> list[Probe]:
        """Return the wanted probes of a turn, of each prompt the one with most draws first.

        Its calls leave the beginning of the prompt in every slot of a local server, where the
        single draws that follow find it.
        """
        probes = self.probes(turn)
        prompts = [probe.prompt for probe in probes]
        return sorted(probes, key=lambda probe: (prompts.index(probe.prompt), not probe.sampled))


def close_over_needs(probes: Iterable[str]) -> list[str]:
    """Return the probes together with those that must be asked before them.

    Examples
    --------
    >>> close_over_needs(["self_ask_cand"])
    ['greedy', 'samples', 'self_ask_cand']
    """
    target = set(probes)
    for name in tuple(target):
        target.update(PROBES[name].needs)
    return [name for name in PROBES if name in target]


class Subject(Struct, frozen=True):
    """What a second turn asks about."""

    answer: str
    response: str
    candidates: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()


class Tag(Struct, frozen=True):
    """What lets the runner recognise an outcome."""

    question: PlannedQuestion
    probe: Probe
    about: str | None = None
    position: int = 0

    @classmethod
    def of(cls, ask: Ask) -> Tag:
        """Return the tag of an ask that a study has made."""
        assert isinstance(ask.tag, cls)
        return ask.tag


class AskPlanner(Struct, frozen=True):
    """Turns questions into asks for one model.

    The request depends on the study file and the question alone, never on when or in which order
    it is sent: that is what lets a second run find everything in the ledger.
    """

    config: StudyConfig
    model: ModelConfig
    wanted: Wanted
    able: Capabilities
    book: PromptBook

    @classmethod
    def of(
        cls, config: StudyConfig, model: ModelConfig, wanted: Wanted, able: Capabilities
    ) -> AskPlanner:
        """Return the asker of a model with its own prompts and temperature."""
        observed = config.for_model(model)
        return cls(
            observed, model, wanted, able, PromptBook(observed.prompts, folder=observed.folder)
        )

    def most_tokens(self, prompt: str, kind: str) -> int:
        """Return how long a reply to this prompt may be."""
        usual = self.book.find(prompt, kind).max_tokens
        return self.config.sampling.max_tokens.get(prompt, usual)

    def subject(
        self,
        question: PlannedQuestion,
        response: str | None,
        samples: Sequence[str],
        extract: Extract,
    ) -> Subject | None:
        """Return what second turns ask about; without an answer there is nothing to ask.

        Parameters
        ----------
        question
            The question.
        response
            The greedy response, None where there is none.
        samples
            Sampled responses, from which the candidates come.
        extract
            Finds the answer in a response.
        """
        answer = None if response is None else extract(question, response)
        if response is None or answer is None:
            return None
        sampled = filter(None, (extract(question, text) for text in samples))
        display = most_frequent(list(sampled), self.config.sampling.candidates)
        return Subject(answer, response, tuple(display), tuple(samples))

    def first_turn(self, questions: Sequence[PlannedQuestion]) -> Iterator[Ask]:
        """Yield the asks that need nothing but the question."""
        for probe in self.wanted.in_sending_order(1):
            for question in questions:
                yield self._ask(question, probe)

    def second_turn(
        self, questions: Sequence[PlannedQuestion], subjects: Mapping[str, Subject]
    ) -> Iterator[Ask]:
        """Yield the asks about greedy answers; questions without one are left out."""
        for probe in self.wanted.probes(2):
            for question in questions:
                subject = subjects.get(question.question_id)
                if subject is None:
                    continue
                if not probe.per_sample:
                    yield self._ask(question, probe, subject)
                    continue
                for position, sample in enumerate(subject.samples):
                    alone = replace(subject, candidates=(sample,))
                    yield self._ask(question, probe, alone, position)

    def pool_turn(
        self, questions: Sequence[PlannedQuestion], pools: Mapping[str, Sequence[str]]
    ) -> Iterator[Ask]:
        """Yield the asks about every candidate of the pool that the models share."""
        for probe in self.wanted.probes(3):
            for question in questions:
                for position, candidate in enumerate(pools.get(question.question_id, ())):
                    yield self._ask(question, probe, Subject(candidate, candidate), position)

    def _ask(
        self,
        question: PlannedQuestion,
        probe: Probe,
        subject: Subject | None = None,
        position: int = 0,
    ) -> Ask:
        prompt = self.book.find(probe.prompt, question.kind)
        values = {
            "question": question.text,
            "choices": lettered(question.choices),
            "k": str(self.config.sampling.topk),
        }
        about = None
        if subject is not None:
            about = subject.response if prompt.shows == "response" else subject.answer
            values |= {"answer": about, "candidates": listed(subject.candidates)}
        request = self._request(question, probe, prompt, values)
        tag = Tag(question, probe, about, position)
        return Ask(request, probe.ledger_purpose, draws=self.wanted.draws[probe.name], tag=tag)

    def _request(
        self, question: PlannedQuestion, probe: Probe, prompt: Prompt, values: Mapping[str, str]
    ) -> Request:
        sampling = self.config.sampling
        alternatives = TOP_TOKENS if probe.name in self.wanted.top else 0
        temperature = sampling.temperature if probe.sampled else 0.0
        return Request(
            model=self.model.model,
            messages=with_turns(prompt.messages(values), question.turns),
            temperature=temperature,
            max_tokens=sampling.max_tokens.get(probe.prompt, prompt.max_tokens),
            logprobs=probe.name in self.wanted.logprobs,
            top_logprobs=min(alternatives, self.able.top_logprobs),
            seed=self._seed(question, probe) if self.able.seed and temperature > 0 else None,
            stop=prompt.stop,
        )

    def _seed(self, question: PlannedQuestion, probe: Probe) -> int:
        # Seeds are stepped by draw, so two questions must be far apart: 31 bits of a hash.
        key = (self.config.seed, self.model.name, question.question_id, probe.ledger_purpose)
        digest = hashlib.blake2b(repr(key).encode(), digest_size=4).digest()
        return int.from_bytes(digest) >> 1


Extract = Callable[[PlannedQuestion, str], str | None]
"""Finds the final answer in a response; None where there is none."""


class Inquiry(Struct, frozen=True):
    """Everything that is to be asked.

    Parameters
    ----------
    config, questions
        The study.
    wanted
        Probes wanted of each model, by the model's name.
    clients
        Where each model is reached.
    prices
        Price of each model, None where unknown.
    extract
        Finds the answer that second turns ask about.
    """

    config: StudyConfig
    questions: Sequence[PlannedQuestion]
    wanted: Mapping[str, Wanted]
    clients: Mapping[str, Client]
    prices: Mapping[str, Price | None]
    extract: Extract

    def asker(self, model: ModelConfig) -> AskPlanner:
        """Return what turns the questions into asks for this model."""
        able = self.clients[model.name].capabilities
        return AskPlanner.of(self.config, model, self.wanted[model.name], able)

    def pools(self, subjects: Sequence[Mapping[str, Subject]]) -> dict[str, list[str]]:
        """Return the distinct greedy answers of all models, with samples if wanted, by question."""
        samples = any(target.judge_samples for target in self.wanted.values())
        names = [question.question_id for question in self.questions]
        answers = {name: [item[name] for item in subjects if name in item] for name in names}
        return {
            name: distinct(
                answer
                for subject in asked_about
                for answer in (subject.answer, *(subject.candidates if samples else ()))
            )
            for name, asked_about in answers.items()
        }


def distinct(answers: Iterable[str]) -> list[str]:
    """Return the answers that differ in more than case and spaces, in order.

    The rule is kept this simple on purpose: prompts are built from it, and a cleverer one would
    change prompts, and so buy draws again, whenever it became cleverer still.

    Examples
    --------
    >>> distinct(["Paris", "paris ", "Lyon"])
    ['Paris', 'Lyon']
    """
    by_plain: dict[str, str] = {}
    for answer in answers:
        by_plain.setdefault(plain_answer(answer), answer)
    return list(by_plain.values())


def most_frequent(answers: Sequence[str], count: int) -> list[str]:
    """Return the `count` most frequent distinct answers, the first seen among equals.

    Examples
    --------
    >>> most_frequent(["Lyon", "Paris", "paris"], 2)
    ['Paris', 'Lyon']
    """
    times = Counter(plain_answer(answer) for answer in answers)
    ranking = sorted(distinct(answers), key=lambda answer: -times[plain_answer(answer)])
    return ranking[:count]


def plain_answer(answer: str) -> str:
    """Return the answer without differences of case and spaces.

    Examples
    --------
    >>> plain_answer(" New  York")
    'new york'
    """
    return " ".join(answer.casefold().split())
