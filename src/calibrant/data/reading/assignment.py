"""Which columns are confidence and outcome: the best reading with a margin, or a question."""

from collections.abc import Sequence
from itertools import product

import polars as pl
from msgspec import Struct, structs

from calibrant.data.reading import relations
from calibrant.data.reading.candidates import (
    GRADE_ROLES,
    SAID_ROLES,
    OutcomeCandidate,
    ReadingChoice,
    SaidCandidate,
    agreement,
    match,
    model_key,
    models_beside,
    say_the_same,
)
from calibrant.data.reading.cells import Column
from calibrant.data.reading.likely_columns import (
    outcome_candidates,
    said_candidates,
    vocabulary_probabilities,
)
from calibrant.data.reading.names import model_columns, name_roles
from calibrant.data.reading.pairs import class_candidates, pair_candidates
from calibrant.data.reading.relations import MARGIN, OUTCOME_LEAST, ROLE_MARGIN, SAID_LEAST

TAKE, ASK, REFUSE = "take", "ask", "refuse"
_CROWD, _NAMED, _MOSTLY = 4, 2.5, 0.5
"""So many columns may be the confidence, and none is called so: no question about three helps."""
_LEAST_SAID, _LEAST_OUTCOME, _LEAST_SUM = 1.9, 1.3, 4.6


class ReadingDecision(Struct):
    """What to do with a table: take the first choice, ask about them, or refuse it."""

    kind: str
    choices: tuple[ReadingChoice, ...] = ()
    doubts: tuple[str, ...] = ()
    why: str = ""


class Named(Struct, frozen=True):
    """Columns that somebody named: they are never put in doubt."""

    confidence: tuple[str, ...] = ()
    correct: tuple[str, ...] = ()
    taken: frozenset[str] = frozenset()


def decide(frame: pl.DataFrame, named: Named | None = None) -> ReadingDecision:
    """Decide how a table is read by some of its rows.

    Examples
    --------
    >>> table = {"certainty": [0.9, 0.6, 0.8, 0.7], "was_wrong": [0, 1, 0, 0]}
    >>> found = decide(pl.DataFrame(table))
    >>> found.kind, found.choices[0].said[0].column, found.choices[0].outcome.right
    ('take', 'certainty', ('0',))
    """
    named = named or Named()
    filled = (series for series in frame if series.null_count() < frame.height)
    columns = [Column(series) for series in filled if series.name not in named.taken]
    if why := _results(columns, frame.height):
        return ReadingDecision(REFUSE, why=why)
    return _Assignment(columns, named).decision()


def _results(columns: Sequence[Column], height: int) -> str:
    """Say where a table holds results, not answers; empty where it does not."""
    counts = {"n", "count", "num", "samples", "total", "items", "questions"}
    words = {word for column in columns for word in column.tokens}
    tally = any({*column.tokens} <= counts for column in columns)
    sums = any(c.roles.confidence >= 2 or "ece" in c.tokens for c in columns)
    if height <= 60 and {"accuracy", "acc"} & words and tally and sums:
        return "the table holds results (accuracy, mean confidence, counts), not answers"
    return ""


class _Assignment:
    """The candidates of a table, and what was decided about them."""

    def __init__(self, columns: Sequence[Column], named: Named) -> None:
        self.columns = {column.name: column for column in columns}
        self.height = columns[0].height if columns else 0
        self.classes, used = class_candidates(columns)
        used |= vocabulary_probabilities(columns)
        usual = [column for column in columns if column.name not in used or named.confidence]
        self.said = [c for c in said_candidates(usual) if c.column not in used]
        self.outcomes = self.all_outcomes = outcome_candidates(columns, self.said)
        self.pairs = pair_candidates(columns)
        if named.confidence:
            own = (c for c in said_candidates(usual) if c.column in named.confidence)
            self.said, self.classes = [_chosen(c) for c in own], []
        if named.correct:
            self.outcomes = [_known(o) for o in self.outcomes if o.column in named.correct]
            self.pairs, self.classes = [], []
        relations.verify(self.outcomes, self.pairs)
        self.pairs = [pair for pair in self.pairs if not pair.same]
        self.beside = models_beside(columns, self.said, self.outcomes)
        texts = [column.name for column in columns if column.words and not column.numeric]
        if model_columns(texts) or named.confidence or named.correct:
            self.beside = []
        relations.lift_by_association(self.said, self.outcomes)
        relations.lift_neutral(self.said, self.outcomes)
        self.said.sort(key=lambda c: -c.score)
        self.outcomes.sort(key=lambda o: -o.score)
        self.some_named = any(c.named >= 2 and c.score >= 2 for c in self.said)
        self.made: set[str] = set()
        self.verdicts: set[str] = set()

    # -- readings ---------------------------------------------------------------------------

    def decision(self) -> ReadingDecision:
        """Return the best reading, and the others where it leaves a doubt."""
        choices = [*self._of_models(), *self._of_classes(), *self._of_columns()]
        if not choices:
            return ReadingDecision(REFUSE, why=self._lacking())
        choices.sort(key=lambda choice: -choice.score)
        best = choices[0]
        if best.models:
            return ReadingDecision(ASK if best.doubts else TAKE, (best,), best.doubts)
        confidence, outcome = best.said[0], best.outcome
        weak = confidence.score < _LEAST_SAID or outcome.score < _LEAST_OUTCOME
        weak = weak or confidence.score + outcome.score < _LEAST_SUM
        if weak and (confidence.score < 2.0 or outcome.score < 1.9):
            return ReadingDecision(REFUSE, why=self._lacking())
        if self._is_crowded(best, choices):
            return ReadingDecision(REFUSE, why="confidence:" + outcome.column)
        self._add_methods(best, choices)
        near = [*relations.rivals(best, choices), *self._of_one_model(best)]
        weak = relations.is_weak(best, near, self._is_alone(outcome))
        if outcome.conflict is not None:
            pair = outcome.conflict
            best.notes += (f"{outcome.column} is not the same as {pair.column}.",)
            peer = ReadingChoice((confidence,), pair, best.score - 1, notes=pair.notes)
            near = [peer, *(choice for choice in near if choice.outcome is not pair)]
        more = {"which": bool(near), "unsure": weak}
        doubts = tuple(dict.fromkeys([*best.doubts, *filter(more.get, more)]))
        if not doubts:
            return ReadingDecision(TAKE, (self._with_left_out(best),))
        peers = [*relations.variants(best, doubts, self.columns), *near]
        for rival in filter(relations.is_turned, near[:3]):
            peers += relations.variants(rival, ("direction", "unsure"), self.columns)
        return ReadingDecision(ASK, relations.in_order([best, *peers])[:3], doubts)

    def _is_crowded(self, best: ReadingChoice, choices: Sequence[ReadingChoice]) -> bool:
        """Return whether many columns may be the confidence, and none is called like one."""
        if best.said[0].score >= _NAMED or name_roles(best.outcome.column).graded < 2:
            return False
        near = {c.said[0].column for c in choices if best.score - c.score < MARGIN}
        return not best.outcome.pair and len(near) >= _CROWD

    def _of_models(self) -> list[ReadingChoice]:
        """Return the reading of models side by side, if they stand so."""
        if not self.beside:
            return []
        models, statement, outcomes = zip(*self.beside, strict=True)
        parts = [*statement, *outcomes]
        doubts = tuple(dict.fromkeys(part.doubt for part in parts if part.doubt))
        notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
        score = 14 - len(doubts)
        return [ReadingChoice(statement, outcomes[0], score, doubts, notes, None, models, outcomes)]

    def _of_classes(self) -> list[ReadingChoice]:
        """Return readings of class probabilities; an outcome that says otherwise is a doubt."""
        matches = []
        for confidence, outcome in self.classes:
            others = (o for o in self.outcomes if o.score >= 2.9 and not o.graded)
            shared = {o.column: agreement(o, outcome) for o in others}
            peers = [name for name, (n, equal) in shared.items() if n > 20 and equal < 0.97]
            said = (f"{column} says otherwise." for column in peers)
            notes, doubts = (*confidence.notes, *outcome.notes, *said), ("which",) * bool(peers)
            hit = match(confidence, outcome)
            matches.append(ReadingChoice((confidence,), outcome, 10, doubts, notes, hit))
        return matches

    def _of_columns(self) -> list[ReadingChoice]:
        alone = sorted([*self.outcomes, *self.pairs], key=lambda o: -o.score)
        pairs = (
            (confidence, outcome)
            for confidence, outcome in product(self.said[:8], alone[:8])
            if confidence.column not in (outcome.column, outcome.answer, outcome.gold)
            and min(confidence.score, outcome.score) >= 1
        )
        choices = [choice for pair in pairs if (choice := self._choice(*pair)) is not None]
        return [c for c in choices if c.outcome.column not in self.verdicts]

    def _choice(self, confidence: SaidCandidate, outcome: OutcomeCandidate) -> ReadingChoice | None:
        score = confidence.score + outcome.score
        doubts = [doubt for doubt in (confidence.doubt, outcome.doubt) if doubt]
        notes = [*confidence.notes, *outcome.notes]
        hit = match(confidence, outcome)
        if not hit.n:
            return None
        roles = name_roles(outcome.column)
        if relations.is_threshold(confidence, outcome, hit):
            if hit.n >= 30 or roles.right < 2:
                self.made.add(outcome.column)
                if confidence.named >= _NAMED and relations.is_verdict(confidence, outcome):
                    self.verdicts.add(outcome.column)
                return None
            score -= 1.5
        if outcome.pair and relations.is_of_one_class(confidence, outcome, self.columns):
            return None
        if not outcome.pair and relations.are_linked(confidence, outcome):
            score += 1.2
        # What most rows lack is hardly what the table is about.
        score -= 1.5 * (hit.n < _MOSTLY * self.height and confidence.named < _NAMED)
        nameless = confidence.named < 2 and not self.some_named
        score += 0.4 * (abs(hit.z) > 3) + 0.8 * (abs(hit.z) > 5 and nameless)
        unrelated = abs(hit.z) < 2 and hit.n >= 100 and roles.graded < 2.9
        score -= 0.6 * (unrelated and not outcome.pair)
        reverse = hit.auroc < 0.42 and hit.z < -3
        if reverse and not outcome.verified and not outcome.pair:
            doubts.append("direction")
            text = "/".join(outcome.wrong)[:30]
            notes.append(f"Confidence is higher where {outcome.column} is '{text}'.")
        if outcome.inverted and hit.auroc < 0.45 and hit.z < -3:
            doubts.append("direction")
        return ReadingChoice(
            (confidence,), outcome, score, tuple(dict.fromkeys(doubts)), tuple(notes), hit
        )

    # -- the margin -------------------------------------------------------------------------

    def _add_methods(self, best: ReadingChoice, choices: Sequence[ReadingChoice]) -> None:
        """Add further confidences that are as strong: they are methods and no question."""
        first = best.said[0]
        if first.score < SAID_LEAST or first.doubt or first.probs:
            return
        least, rows = max(SAID_LEAST, first.score - ROLE_MARGIN), best.matches[0].n / 2
        for choice in choices[1:]:
            confidence, hit = choice.said[0], choice.match
            if choice.outcome is not best.outcome or hit is None or hit.n < rows:
                continue
            if confidence.doubt or confidence.probs or confidence.score < least:
                continue
            goes_along = first.named < 2 and hit.auroc > 0.55 and hit.z > 3
            several = self.columns[confidence.column].distinct > 1
            if (confidence.named >= 2 or goes_along) and several and len(best.said) < 6:
                best.said += (confidence,)
                best.notes += tuple(note for note in confidence.notes if note not in best.notes)

    def _of_one_model(self, best: ReadingChoice) -> list[ReadingChoice]:
        """Return readings of a confidence that has an outcome of its own among several."""
        if len(best.said) < 2:
            return []
        own = {model_key(o.column, GRADE_ROLES): o for o in self.all_outcomes if not o.pair}
        models = {model_key(confidence.column, SAID_ROLES): confidence for confidence in best.said}
        return [
            ReadingChoice((confidence,), own[model], best.score - 1)
            for model, confidence in models.items()
            if model and model in own and own[model].column != best.outcome.column
        ]

    def _is_alone(self, outcome: OutcomeCandidate) -> bool:
        """Return whether nothing else may be the outcome, and the name does not speak against it.

        A column `y` of 0 and 1 is then what the confidence, which it goes with, is about.
        """
        peers = [o for o in self.outcomes if o.score >= _LEAST_OUTCOME and o is not outcome]
        usual = not (outcome.doubt or outcome.graded or outcome.happened)
        return usual and not peers and not self.pairs and name_roles(outcome.column).right >= 1

    def _with_left_out(self, best: ReadingChoice) -> ReadingChoice:
        """Say what could have been used and was not."""
        mine, notes = {confidence.column for confidence in best.said}, best.notes
        used = {best.outcome.column, *self.made}
        strong = [o for o in self.outcomes if o.score >= OUTCOME_LEAST and o.column not in used]
        remaining = [o.column for o in strong if not say_the_same(o, best.outcome)]
        remaining += [c.column for c in self.said if c.score >= SAID_LEAST and c.column not in mine]
        if remaining:
            notes += (f"Not used: {', '.join(dict.fromkeys(remaining))}.",)
        if self.made:
            text = ", ".join(sorted(self.made))
            notes += (f"{text} follows from the confidence and is no outcome.",)
        return structs.replace(best, notes=notes)

    def _lacking(self) -> str:
        confidence = [c.column for c in self.said if c.score >= 2]
        graded = [o.column for o in (*self.outcomes, *self.pairs) if o.score >= 1.9]
        if confidence and graded:
            return f"{confidence[0]} and {graded[0]} do not belong to the same rows"
        if confidence:
            return "outcome:" + ",".join(confidence[:3])
        return "confidence:" + ",".join(graded[:3]) if graded else ""


def _chosen(confidence: SaidCandidate) -> SaidCandidate:
    """Return a confidence that somebody named: only its scale may be asked about."""
    settled = ("whose", "unsure", "uncertainty", "logprob")
    doubt = "" if confidence.doubt in settled else confidence.doubt
    return structs.replace(confidence, score=9.0, named=9.0, doubt=doubt)


def _known(outcome: OutcomeCandidate) -> OutcomeCandidate:
    """Return an outcome that somebody named: only its words may be asked about."""
    doubt = "" if outcome.doubt in ("decision", "unsure", "leftover") else outcome.doubt
    return structs.replace(outcome, score=outcome.score + 6, doubt=doubt)
