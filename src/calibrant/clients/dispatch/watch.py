"""What an endpoint does to its draws, seen from the draws themselves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from calibrant.clients.answers.tokens import TokenLogprobs
from calibrant.clients.asks import Ask, Finding, LedgeredDraw
from calibrant.clients.protocol import Completion, EndpointRefusedError, Request

WARM = 0.7
"""Temperature from which on draws are expected to differ."""
LONG = 40
"""A text of this many characters is not repeated by chance."""
RARE = 1e-6
HOPELESS_AFTER = 8


@dataclass(slots=True)
class _Repeats:
    """Comparisons of a draw with an earlier draw of the same request."""

    compared: int = 0
    repeated: int = 0
    questions: int = 0
    characters: int = 0
    # The subset where log-probs tell how likely a repetition is.
    priced: int = 0
    priced_repeated: int = 0
    expected: float = 0.0

    def suspicious(self) -> bool:
        """Whether so many repetitions cannot be chance."""
        unlikely = _poisson_tail(self.priced_repeated, self.expected) < RARE
        if self.priced_repeated >= 3 and unlikely:
            return True
        if self.priced or self.compared == 0 or self.repeated < self.compared:
            return False
        # Without log-probs only a run without any variation at all is taken for copies: a
        # strong model may well answer one easy question twenty times in the same words.
        if self.characters / self.compared >= LONG:
            return self.compared >= 5
        return self.compared >= 15 and self.questions >= 3


@dataclass(slots=True)
class EndpointWatch:
    """Collects what is seen and says what a reader of the results must know."""

    within: _Repeats = field(default_factory=_Repeats)
    between: _Repeats = field(default_factory=_Repeats)
    models: dict[str, Counter[str]] = field(default_factory=dict)
    same_call_id: int = 0
    asked_logprobs: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    new_asked: int = 0
    new_refused: int = 0
    missing_logprobs: int = 0
    fewer_choices: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    estimated: Counter[str] = field(default_factory=Counter)
    odd: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    not_sent: Counter[str] = field(default_factory=Counter)
    seen: int = 0
    new_seen: int = 0
    cut_off: int = 0
    cut_thinking: int = 0
    new_cut_thinking: int = 0

    def see(self, ask: Ask, draws: Sequence[LedgeredDraw]) -> None:
        """Take note of the draws of one ask."""
        completions = [draw.completion for draw in draws]
        for draw in draws:
            if draw.completion.model is not None:
                self.models.setdefault(ask.request.model, Counter())[draw.completion.model] += 1
            if draw.completion.usage_estimated is not None:
                self.estimated[draw.completion.usage_estimated] += 1
            if draw.completion.odd is not None:
                self.odd[draw.completion.odd] += 1
            self.not_sent.update(draw.completion.not_sent)
            self._see_end(draw)
            if ask.request.logprobs:
                self._see_logprobs(draw.completion)
                self.new_asked += not draw.cached
                self.new_refused += not draw.cached and draw.completion.logprobs_refused is not None
        if ask.request.temperature >= WARM and len(completions) > 1:
            self._see_repeats(ask.request, completions)

    def _see_end(self, draw: LedgeredDraw) -> None:
        done = draw.completion
        cut = done.finish_reason == "length"
        thinking = cut and not done.text.strip()
        self.seen += 1
        self.new_seen += not draw.cached
        self.cut_off += cut
        self.cut_thinking += thinking
        self.new_cut_thinking += thinking and not draw.cached

    def _see_logprobs(self, completion: Completion) -> None:
        self.asked_logprobs += 1
        if completion.logprobs_refused is not None:
            self.refused[completion.logprobs_refused] += 1
        elif completion.logprobs is None and completion.text:
            self.missing_logprobs += 1

    def _see_repeats(self, request: Request, completions: Sequence[Completion]) -> None:
        calls = _by_call(completions)
        ids = [call[0].request_id for call in calls if call[0].request_id is not None]
        self.same_call_id += len(ids) - len(set(ids))
        for call in calls:
            _compare(self.within, request, call)
        _compare(self.between, request, [call[0] for call in calls])

    def check(self) -> None:
        """Raise where going on would buy log-probs that are refused every time."""
        if self.new_cut_thinking >= HOPELESS_AFTER and self.new_cut_thinking == self.new_seen:
            raise EndpointRefusedError(
                f"all {self.new_seen} answers were cut off before they began: the model spends its "
                "tokens on thinking; set thinking_tokens of the model to 4096 or more"
            )
        if self.new_refused >= HOPELESS_AFTER and self.new_refused == self.new_asked:
            raise EndpointRefusedError(
                f"the log-probs of all {self.new_refused} draws were refused: "
                f"{_most_often(self.refused)}"
            )

    def findings(self) -> list[Finding]:
        """Return what was found, the gravest first."""
        repeats = ((self.between, "of separate calls"), (self.within, "of one call (n > 1)"))
        found = [
            (
                self.same_call_id,
                "draws-not-independent",
                "draws are not independent: several calls came back with the id of an earlier "
                "call, so the endpoint serves stored answers",
            ),
            *(
                (seen.repeated, "draws-not-independent", _words(seen, where))
                for seen, where in repeats
                if seen.suspicious()
            ),
            *(_changed(name, answered) for name, answered in self.models.items()),
            (
                self.refused.total(),
                "logprobs-refused",
                f"log-probs of {self.refused.total()} of {self.asked_logprobs} draws were refused "
                f"(most often: {_most_often(self.refused)})",
            ),
            (
                self.missing_logprobs,
                "logprobs-missing",
                f"{self.missing_logprobs} of {self.asked_logprobs} draws came without the "
                "log-probs asked for",
            ),
            *self._odd(),
            *self._settings(),
            *(
                (
                    times,
                    "endpoint-left-out",
                    f"{name} failed and was left out; the other endpoints went on without it",
                )
                for name, times in self.left_out.items()
            ),
            (
                self.fewer_choices,
                "fewer-choices",
                "the endpoint gave fewer choices than asked for; the rest was asked for again",
            ),
        ]
        return [Finding(kind, message, count) for count, kind, message in found if count]

    def _settings(self) -> list[tuple[int, str, str]]:
        warm = "temperature" in self.not_sent
        return [
            (
                max(self.not_sent.values(), default=0),
                "settings-refused",
                f"the endpoint refuses {', '.join(self.not_sent)}; the calls were sent without"
                + "; a single answer is then one draw at the model's own temperature" * warm,
            ),
            (
                self.cut_off,
                "answers-cut-off",
                f"{self.cut_off} of {self.seen} answers were cut off at their longest length, "
                f"{self.cut_thinking} of them before they began: raise sampling.max_tokens"
                + ", or thinking_tokens of the model"
                * bool(self.cut_thinking),
            ),
        ]

    def _odd(self) -> list[tuple[int, str, str]]:
        return [
            (
                self.estimated.total(),
                "usage-estimated",
                f"the tokens of {self.estimated.total()} draws are estimated from the text "
                f"({_most_often(self.estimated)}); caps count the estimate",
            ),
            (
                self.odd.total(),
                "answers-odd",
                f"{self.odd.total()} answers were odd in form and are kept "
                f"({_most_often(self.odd)})",
            ),
            (
                self.unreadable,
                "ledger-rows-refilled",
                f"{self.unreadable} draws of the ledger had no readable answer and were asked "
                "for again",
            ),
        ]


def _most_often(seen: Counter[str]) -> str:
    return seen.most_common(1)[0][0] if seen else ""


def _changed(name: str, answered: Counter[str]) -> tuple[int, str, str]:
    shares = ", ".join(f"{model}: {count}" for model, count in answered.most_common())
    return (
        answered.total() - max(answered.values()),
        "model-changed",
        f"draws of {name!r} were answered by different models ({shares})",
    )


def _poisson_tail(count: int, mean: float) -> float:
    """Return the probability of `count` or more events where `mean` are expected.

    Written out, because importing scipy for it would double the start of every run.

    Examples
    --------
    >>> round(_poisson_tail(3, 1.0), 6)
    0.080301
    """
    if mean <= 0.0:
        return float(count <= 0)
    term = math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))
    total, step = 0.0, count
    while term > total * 1e-12 or step < mean:
        total += term
        step += 1
        term *= mean / step
    return min(1.0, total)


def _by_call(completions: Sequence[Completion]) -> list[list[Completion]]:
    """Group draws that one call made; a draw with a call of its own is a group."""
    calls: dict[object, list[Completion]] = {}
    for position, completion in enumerate(completions):
        shared = completion.native_n and completion.request_id is not None
        calls.setdefault(completion.request_id if shared else position, []).append(completion)
    return list(calls.values())


def _compare(repeats: _Repeats, request: Request, completions: Sequence[Completion]) -> None:
    """Compare each draw with the first; the first one's log-probs price a repetition."""
    if len(completions) < 2:
        return
    first = completions[0]
    others = len(completions) - 1
    repeated = sum(other.text == first.text for other in completions[1:])
    repeats.questions += 1
    repeats.compared += others
    repeats.repeated += repeated
    repeats.characters += others * len(first.text)
    if first.logprobs and request.temperature >= 1.0 and _whole_distribution(first):
        repeats.priced += others
        repeats.priced_repeated += repeated
        repeats.expected += others * math.exp(sum(TokenLogprobs.of(first.logprobs).values))


def _whole_distribution(completion: Completion) -> bool:
    sampler = completion.sampler
    return (
        sampler.get("top_p", 1.0) >= 1.0
        and sampler.get("top_k", 0.0) <= 0.0
        and sampler.get("min_p", 0.0) <= 0.0
    )


def _words(repeats: _Repeats, where: str) -> str:
    text = (
        f"draws are not independent: {repeats.repeated} of {repeats.compared} draws {where} "
        "repeat an earlier draw word for word although the temperature is not 0"
    )
    if repeats.priced:
        text += (
            f"; {repeats.expected:.2g} repetitions were to be expected from the log-probs of "
            f"{repeats.priced} of them, {repeats.priced_repeated} were seen"
        )
    elif repeats.characters < LONG * repeats.compared:
        text += " (or the model is certain of every answer: log-probs would tell)"
    return text
