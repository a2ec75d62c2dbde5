"""From what methods need to requests: each asked once and shared by all methods."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from string import ascii_uppercase

from msgspec import Struct, structs

from calibrant.core.errors import CapabilityError
from calibrant.models.asks import Ask, Price
from calibrant.models.protocol import Capabilities, Client, Request
from calibrant.models.study.config import ModelConfig, StudyConfig
from calibrant.models.study.probes import (
    NEEDS,
    POOL,
    PROBES,
    STATED_POOL,
    TOP_TOKENS,
    Probe,
    ProbedInput,
)
from calibrant.models.study.prompts import (
    PlannedQuestion,
    Prompt,
    PromptBook,
    distinct,
    listed,
    most_frequent,
    with_turns,
)


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
        """Yield the asks that need nothing but the question.

        Of each prompt the probe with most draws comes first: its calls leave the beginning of the
        prompt in every slot of a local server, where the single draws that follow find it.
        """
        probes = self.wanted.probes(1)
        prompts = [probe.prompt for probe in probes]
        probes.sort(key=lambda probe: (prompts.index(probe.prompt), not probe.sampled))
        for probe in probes:
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
                    alone = structs.replace(subject, candidates=(sample,))
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
        prompt, choices = self.book.find(probe.prompt, question.kind), question.choices
        values = {
            "question": question.text,
            "choices": "\n".join(f"{ascii_uppercase[i]}. {c}" for i, c in enumerate(choices)),
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
        # Seeds are stepped by draw, so two questions must be far apart: 31 bits of a hash.
        key = (self.config.seed, self.model.name, question.question_id, probe.ledger_purpose)
        digest = hashlib.blake2b(repr(key).encode(), digest_size=4).digest()
        return Request(
            model=self.model.model,
            messages=with_turns(prompt.messages(values), question.turns),
            temperature=temperature,
            max_tokens=sampling.max_tokens.get(probe.prompt, prompt.max_tokens),
            logprobs=probe.name in self.wanted.logprobs,
            top_logprobs=min(alternatives, self.able.top_logprobs),
            seed=int.from_bytes(digest) >> 1 if self.able.seed and temperature > 0 else None,
            stop=prompt.stop,
        )


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


class Selection(Struct, frozen=True):
    """What one model is asked for, and which methods it cannot serve, with the reason."""

    wanted: Wanted
    unavailable: Mapping[str, str]


def select_probes(
    methods: Mapping[str, Collection[str]],
    config: StudyConfig,
    able: Capabilities,
    *,
    kinds: Collection[str],
    model: str,
) -> Selection:
    """Return the probes that the methods need, each once.

    Parameters
    ----------
    methods
        Needs of each wanted method.
    config
        The study.
    able
        What the model's endpoint can give.
    kinds
        Kinds of question in the study.
    model
        Name of the model, for messages.

    Raises
    ------
    CapabilityError
        Where study.toml names a method that the endpoint cannot serve. With ``methods = "all"``
        such methods are listed as unavailable instead.
    """
    unavailable: dict[str, str] = {}
    needs: list[ProbedInput] = []
    for method, names in methods.items():
        lack = next(filter(None, (_lack(name, able, kinds) for name in names)), None)
        lack = lack or _not_asked(names, config)
        if lack is None:
            needs.extend(NEEDS[name] for name in names)
            continue
        if config.methods is not None:
            raise CapabilityError(
                f"the method {method} cannot be used with the model {model}: {lack}; "
                "nothing was sent\n  -> take it off `methods` in study.toml, or use another "
                "endpoint"
            )
        unavailable[method] = lack
    return Selection(_wanted(needs, config, able), unavailable)


def _lack(name: str, able: Capabilities, kinds: Collection[str]) -> str | None:
    need = NEEDS.get(name)
    if need is None:
        return f"it needs {name}, which a study does not collect"
    if need.logprobs and not able.logprobs:
        return "the endpoint gives no log-probs"
    if need.top and able.top_logprobs < 2:
        return "the endpoint shows no alternatives of the first token"
    if need.kinds and not set(need.kinds) & set(kinds):
        return f"no question is of the kind {' or '.join(need.kinds)}"
    return None


def _not_asked(names: Collection[str], config: StudyConfig) -> str | None:
    """Say why ``methods = "all"`` leaves a method out, or what else the study lacks for it."""
    if "panel" in names and len(config.models) < 2:
        return "a panel needs a second model"
    if "ensemble" in names:
        return None if config.scoring.ensemble else "scoring.ensemble names no file"
    costly = next((name for name in names if NEEDS[name].named_only), None)
    if costly is None or config.methods is not None:
        return None
    if NEEDS[costly].probe == POOL and config.candidate_pool and costly == "panel":
        return None
    return "it takes many calls, so it is asked only where `methods` names it"


def _wanted(needs: list[ProbedInput], config: StudyConfig, able: Capabilities) -> Wanted:
    names = {need.probe for need in needs}
    if config.candidate_pool:
        # Each model says how sure it is of every answer in the way that it is asked about its own.
        names |= {POOL} | ({STATED_POOL} if "self_ask" in names else set())
    repeated = {need.probe for need in needs if need.repeated}
    before = {first for name in names for first in PROBES[name].needs}
    draws = {}
    for name, probe in PROBES.items():
        if name in names | before:
            votes_not_needed = probe.first_token and name not in repeated and able.logprobs
            draws[name] = 1 if votes_not_needed else config.sampling.times(name)
    readable = {POOL} & names if able.top_logprobs >= 2 else set[str]()
    return Wanted(
        draws=draws,
        logprobs=frozenset({need.probe for need in needs if need.logprobs} | readable),
        top=frozenset({need.probe for need in needs if need.top} | readable),
        judge_samples=any(need.judge_samples for need in needs),
    )
