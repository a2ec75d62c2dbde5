"""What an endpoint does to its draws, seen from the draws themselves."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from msgspec import Struct

from calibrant.core.names import data_beside
from calibrant.models.asks import Ask, EndpointNote, LedgeredDraw
from calibrant.models.protocol import Completion, EndpointRefusedError, Request
from calibrant.models.replies import TokenLogprobs

WARM = 0.7
"""Temperature from which on draws are expected to differ."""
LONG = 40
"""A text of this many characters is not repeated by chance."""
RARE = 1e-6
HOPELESS_AFTER = 8


class _Repeats(Struct):
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
        if self.priced_repeated >= 3:
            # Loaded here: it would double the start of every run.
            from scipy.special import gammainc

            # The probability of so many events or more where so many are expected.
            if gammainc(self.priced_repeated, self.expected) < RARE:
                return True
        if self.priced or self.compared == 0 or self.repeated < self.compared:
            return False
        # Without log-probs only a run without any variation at all is taken for copies: a
        # strong model may well answer one easy question twenty times in the same words.
        if self.characters / self.compared >= LONG:
            return self.compared >= 5
        return self.compared >= 15 and self.questions >= 3


class EndpointWatch:
    """Collects what is seen and says what a reader of the results must know.

    `counts` holds how often each kind of finding was seen, and how many draws there were; `why`
    what exactly was seen; of draws that are new in this run the names begin with ``new``.
    """

    def __init__(self) -> None:
        self.within, self.between = _Repeats(), _Repeats()
        self.counts: Counter[str] = Counter()
        self.why: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.models: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def note(self, kind: str, why: str) -> None:
        """Count a finding and what it was."""
        self.counts[kind] += 1
        self.why[kind][why] += 1

    def see(self, ask: Ask, draws: Sequence[LedgeredDraw]) -> None:
        """Take note of the draws of one ask."""
        completions = [draw.completion for draw in draws]
        for draw, completion in zip(draws, completions, strict=True):
            if completion.model is not None:
                self.models[ask.request.model][completion.model] += 1
            if completion.usage_estimated is not None:
                self.note("usage-estimated", completion.usage_estimated)
            if completion.odd is not None:
                self.note("answers-odd", completion.odd)
            if completion.not_sent:
                self.counts["settings-refused"] += 1
                self.why["settings-refused"].update(completion.not_sent)
            cut = completion.finish_reason == "length"
            observed = {
                "seen": 1,
                "answers-cut-off": cut,
                "unbegun": cut and not completion.text.strip(),
            }
            if ask.request.logprobs:
                refused = completion.logprobs_refused is not None
                observed |= {"asked": 1, "refused": refused}
                if completion.logprobs_refused is not None:
                    self.note("logprobs-refused", completion.logprobs_refused)
                elif completion.logprobs is None and completion.text:
                    self.counts["logprobs-missing"] += 1
            self.counts.update(observed)
            if not draw.cached:
                self.counts.update({f"new {name}": number for name, number in observed.items()})
        if ask.request.temperature >= WARM and len(completions) > 1:
            self._see_repeats(ask.request, completions)

    def _see_repeats(self, request: Request, completions: Sequence[Completion]) -> None:
        # Draws of one call are a group; so is a draw with a call of its own.
        calls: dict[object, list[Completion]] = {}
        for position, draw in enumerate(completions):
            shared = draw.native_n and draw.request_id is not None
            calls.setdefault(draw.request_id if shared else position, []).append(draw)
        firsts = [call[0] for call in calls.values()]
        ids = [first.request_id for first in firsts if first.request_id is not None]
        self.counts["draws-not-independent"] += len(ids) - len(set(ids))
        for call in calls.values():
            _compare(self.within, request, call)
        _compare(self.between, request, firsts)

    def check(self) -> None:
        """Raise where going on would buy log-probs that are refused every time."""
        seen = self.counts
        if seen["new unbegun"] >= HOPELESS_AFTER and seen["new unbegun"] == seen["new seen"]:
            raise EndpointRefusedError(
                f"all {seen['new seen']} answers were cut off before they began: the model spends "
                "its tokens on thinking; set thinking_tokens of the model to 4096 or more"
            )
        if seen["new refused"] >= HOPELESS_AFTER and seen["new refused"] == seen["new asked"]:
            raise EndpointRefusedError(
                f"the log-probs of all {seen['new refused']} draws were refused: "
                f"{_most_often(self.why['logprobs-refused'])}"
            )

    def findings(self) -> list[EndpointNote]:
        """Return what was found, the gravest first."""
        names = self.why["settings-refused"]
        warm = "; a single answer is then one draw at the model's own temperature"
        fields = {
            **self.counts,
            "asked": self.counts["asked"],
            "unbegun": self.counts["unbegun"],
            "refused": ", ".join(names),
            "warm": warm if "temperature" in names else "",
            "or_thinking": ", or thinking_tokens of the model" if self.counts["unbegun"] else "",
        }
        counts = []
        for kind, message in MESSAGES.items():
            if count := self.counts[kind]:
                filled = {"count": count, "why": _most_often(self.why[kind])}
                counts.append(EndpointNote(kind, message.format_map({**fields, **filled}), count))
        repeats = ((self.between, "of separate calls"), (self.within, "of one call (n > 1)"))
        copies = [
            EndpointNote("draws-not-independent", _words(observed, where), observed.repeated)
            for observed, where in repeats
            if observed.suspicious()
        ]
        changed = [_changed(*item) for item in self.models.items() if len(item[1]) > 1]
        left_out = [
            EndpointNote(
                "endpoint-left-out",
                f"{name} failed and was left out; the other endpoints went on without it",
                times,
            )
            for name, times in self.why["endpoint-left-out"].items()
        ]
        return [*copies, *changed, *counts, *left_out]


MESSAGES: dict[str, str] = data_beside(__file__, "findings.toml")


def _most_often(observed: Counter[str]) -> str:
    return max(observed, key=observed.__getitem__, default="")


def _changed(name: str, answers: Counter[str]) -> EndpointNote:
    shares = ", ".join(f"{model}: {count}" for model, count in answers.most_common())
    return EndpointNote(
        "model-changed",
        f"draws of {name!r} were answered by different models ({shares})",
        answers.total() - max(answers.values()),
    )


def _compare(repeats: _Repeats, request: Request, completions: Sequence[Completion]) -> None:
    """Compare each draw with the first; the first one's log-probs price a repetition."""
    if len(completions) < 2:
        return
    first = completions[0]
    others = len(completions) - 1
    repeated = sum(peer.text == first.text for peer in completions[1:])
    repeats.questions += 1
    repeats.compared += others
    repeats.repeated += repeated
    repeats.characters += others * len(first.text)
    get = first.sampler.get
    is_whole = get("top_p", 1.0) >= 1.0 and get("top_k", 0.0) <= 0.0 and get("min_p", 0.0) <= 0.0
    if first.logprobs and request.temperature >= 1.0 and is_whole:
        repeats.priced += others
        repeats.priced_repeated += repeated
        repeats.expected += others * math.exp(sum(TokenLogprobs.of(first.logprobs).values))


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
