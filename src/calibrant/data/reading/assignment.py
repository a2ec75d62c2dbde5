"""Which columns are confidence and outcome: the best reading with a margin, or a question."""

from collections.abc import Sequence

import polars as pl
from msgspec import Struct, structs

from calibrant.data.reading.beside import GRADE_ROLES, SAID_ROLES, model_key, models_beside
from calibrant.data.reading.candidates import (
    Choice,
    OutcomeCandidate,
    SaidCandidate,
    agreement,
    match,
    say_the_same,
)
from calibrant.data.reading.columns import Column
from calibrant.data.reading.confidences import said_candidates, vocabulary_probabilities
from calibrant.data.reading.names import name_roles
from calibrant.data.reading.outcomes import outcome_candidates
from calibrant.data.reading.pairs import class_candidates, pair_candidates
from calibrant.data.reading.relations import (
    are_linked,
    is_of_one_class,
    is_threshold,
    lift_by_association,
    lift_neutral,
    verify,
)
from calibrant.data.reading.variants import variants

TAKE, ASK, REFUSE = "take", "ask", "refuse"
# A reading is taken only from these scores on, and where no other is within the margin.
_SAID_LEAST, _OUTCOME_LEAST = 3.0, 2.6
_MARGIN, _ROLE_MARGIN = 1.5, 1.2
_CROWD, _NAMED, _CORE, _SURELY = 4, 2.5, 2.9, 5
"""So many columns may be the confidence, and none is called so: no question about three helps."""
_LEAST_SAID, _LEAST_OUTCOME, _LEAST_SUM = 1.9, 1.3, 4.6


class Decision(Struct):
    """What to do with a table: take the first choice, ask about them, or refuse it."""

    kind: str
    choices: tuple[Choice, ...] = ()
    doubts: tuple[str, ...] = ()
    why: str = ""
    crowd: tuple[str, ...] = ()


class Named(Struct, frozen=True):
    """Columns that somebody named: they are never put in doubt."""

    confidence: tuple[str, ...] = ()
    correct: tuple[str, ...] = ()
    taken: frozenset[str] = frozenset()


def decide(frame: pl.DataFrame, named: Named | None = None) -> Decision:
    """Decide how a table is read by some of its rows.

    Examples
    --------
    >>> table = {"certainty": [0.9, 0.6, 0.8, 0.7], "was_wrong": [0, 1, 0, 0]}
    >>> found = decide(pl.DataFrame(table))
    >>> found.kind, found.choices[0].said[0].column, found.choices[0].outcome.right
    ('take', 'certainty', ('0',))
    """
    named = named or Named()
    columns = [Column(series) for series in frame if series.name not in named.taken]
    columns = [column for column in columns if column.series.null_count() < column.height]
    if why := _results(columns, frame.height):
        return Decision(REFUSE, why=why)
    return _Assignment(columns, named).decision()


def _results(columns: Sequence[Column], height: int) -> str:
    """Say where a table holds results, not answers; empty where it does not."""
    counts = {"n", "count", "num", "samples", "total", "items", "questions"}
    words = {word for column in columns for word in column.tokens}
    counted = any({*column.tokens} <= counts for column in columns)
    sums = any(c.roles.confidence >= 2 or "ece" in c.tokens for c in columns)
    if height <= 60 and {"accuracy", "acc"} & words and counted and sums:
        return "the table holds results (accuracy, mean confidence, counts), not answers"
    metrics = {"accuracy", "acc", "f1", "precision", "recall", "auc", "auroc", "ece", "brier"}
    found = [
        column.name
        for column in columns
        if metrics & {*column.tokens} and column.numeric and not {*column.words} <= {"0", "1"}
    ]
    texts = any(c.roles.text >= 1.4 and c.distinct > 0.5 * c.height > 2.5 for c in columns)
    if len(found) >= 2 and not texts:
        return f"the table holds results ({', '.join(found[:3])}), not answers"
    return ""


class _Assignment:
    """The candidates of a table, and what was decided about them."""

    def __init__(self, columns: Sequence[Column], named: Named) -> None:
        self.columns = {column.name: column for column in columns}
        self.classes, used = class_candidates(columns)
        used |= vocabulary_probabilities(self.columns.keys(), columns)
        usual = [column for column in columns if column.name not in used or named.confidence]
        self.said = [c for c in said_candidates(usual) if c.column not in used]
        self.outcomes = self.all_outcomes = outcome_candidates(columns, self.said)
        self.pairs = pair_candidates(columns)
        if named.confidence:
            self.said = [_chosen(c) for c in said_candidates(usual) if c.column in named.confidence]
            self.classes = []
        if named.correct:
            own = [o for o in self.outcomes if o.column in named.correct]
            self.outcomes, self.pairs, self.classes = [_known(o) for o in own], [], []
        verify(self.outcomes, self.pairs, self.columns)
        self.pairs = [pair for pair in self.pairs if not pair.same]
        self.beside = models_beside(columns, self.said, self.outcomes)
        if any(c.words and _names_models(c) for c in columns) or named.confidence or named.correct:
            self.beside = []
        lift_by_association(self.said, self.outcomes, self.columns)
        lift_neutral(self.said, self.outcomes, self.columns)
        self.said.sort(key=lambda c: -c.score)
        self.outcomes.sort(key=lambda o: -o.score)
        self.some_named = any(c.named >= 2 and c.score >= 2 for c in self.said)
        self.made: set[str] = set()

    # -- readings ---------------------------------------------------------------------------

    def decision(self) -> Decision:
        """Return the best reading, and the others where it leaves a doubt."""
        choices = [*self._of_models(), *self._of_classes(), *self._of_columns()]
        if not choices:
            return Decision(REFUSE, why=self._lacking())
        choices.sort(key=lambda choice: -choice.score)
        best = choices[0]
        if best.models:
            return Decision(ASK if best.doubts else TAKE, (best,), best.doubts)
        said, outcome = best.said[0], best.outcome
        total = said.score + outcome.score
        if (said.score < 2.0 or outcome.score < 1.9) and (
            said.score < _LEAST_SAID or outcome.score < _LEAST_OUTCOME or total < _LEAST_SUM
        ):
            return Decision(REFUSE, why=self._lacking())
        if crowd := self._crowd(best, choices):
            return Decision(REFUSE, why="confidence:" + outcome.column, crowd=crowd)
        self._add_methods(best, choices)
        near = [*self._rivals(best, choices), *self._of_one_model(best)]
        weak = self._is_weak(best, near)
        if outcome.conflict is not None:
            pair = outcome.conflict
            best.notes += (f"{outcome.column} is not the same as {pair.column}.",)
            near = [Choice((said,), pair, best.score - 1, notes=pair.notes)] + [
                choice for choice in near if choice.outcome is not pair
            ]
        doubts = [*best.doubts, *(["which"] if near else []), *(["unsure"] if weak else [])]
        doubts = [*dict.fromkeys(doubts)]
        if not doubts:
            return Decision(TAKE, (self._with_left_out(best),))
        others = [*variants(best, doubts, self.columns), *near]
        others += [way for rival in near[:3] if _is_turned(rival) for way in self._ways(rival)]
        return Decision(ASK, _graded_first(_by_evidence([best, *others]))[:3], tuple(doubts))

    def _ways(self, choice: Choice) -> list[Choice]:
        return variants(choice, ("direction", "unsure"), self.columns)

    def _crowd(self, best: Choice, choices: Sequence[Choice]) -> tuple[str, ...]:
        """Return the columns that may all be the confidence, where none is called like one."""
        said, outcome = best.said[0], best.outcome
        if said.score >= _NAMED or outcome.pair or name_roles(outcome.column).graded < 2:
            return ()
        near = [c for c in choices if best.score - c.score < _MARGIN]
        columns = tuple(dict.fromkeys(choice.said[0].column for choice in near))
        return columns if len(columns) >= _CROWD else ()

    def _of_models(self) -> list[Choice]:
        """Return the reading of models side by side, if they stand so."""
        if not self.beside:
            return []
        said = tuple(c for _, c, _ in self.beside)
        outcomes = tuple(o for _, _, o in self.beside)
        every = [*(c.doubt for c in said), *(o.doubt for o in outcomes)]
        doubts = tuple(dict.fromkeys(doubt for doubt in every if doubt))
        each = [*(c.notes for c in said), *(o.notes for o in outcomes)]
        notes = tuple(dict.fromkeys(note for some in each for note in some))
        models = tuple(model for model, _, _ in self.beside)
        return [Choice(said, outcomes[0], 14 - len(doubts), doubts, notes, None, models, outcomes)]

    def _of_classes(self) -> list[Choice]:
        """Return readings of class probabilities; an outcome that says otherwise is a doubt."""
        found = []
        for said, outcome in self.classes:
            others = [
                o for o in self.outcomes
                if o.score >= 2.9 and not o.graded and not _agree(o, outcome)
            ]  # fmt: skip
            notes = (*said.notes, *outcome.notes, *(f"{o.column} says otherwise." for o in others))
            doubts = ("which",) if others else ()
            found.append(Choice((said,), outcome, 10, doubts, notes, match(said, outcome)))
        return found

    def _of_columns(self) -> list[Choice]:
        found = []
        alone = sorted([*self.outcomes, *self.pairs], key=lambda o: -o.score)
        for said in self.said[:8]:
            for outcome in alone[:8]:
                own = {outcome.column, outcome.answer, outcome.gold}
                if said.column in own or said.score < 1 or outcome.score < 1:
                    continue
                choice = self._choice(said, outcome)
                if choice is not None:
                    found.append(choice)
        return found

    def _choice(self, said: SaidCandidate, outcome: OutcomeCandidate) -> Choice | None:
        score = said.score + outcome.score
        doubts = [doubt for doubt in (said.doubt, outcome.doubt) if doubt]
        notes = [*said.notes, *outcome.notes]
        found = match(said, outcome)
        if not found.n:
            return None
        roles = name_roles(outcome.column)
        if is_threshold(said, outcome, found):
            if found.n >= 30 or roles.right < 2:
                self.made.add(outcome.column)
                return None
            score -= 1.5
        if outcome.pair and is_of_one_class(said, outcome, self.columns):
            return None
        if not outcome.pair and are_linked(said, outcome):
            score += 1.2
        nameless = said.named < 2 and not self.some_named
        score += 0.4 * (abs(found.z) > 3) + 0.8 * (abs(found.z) > 5 and nameless)
        unrelated = abs(found.z) < 2 and found.n >= 100 and roles.graded < 2.9
        score -= 0.6 * (unrelated and not outcome.pair)
        reverse = found.auroc < 0.42 and found.z < -3
        if reverse and not outcome.verified and not outcome.pair:
            doubts.append("direction")
            shown = "/".join(outcome.wrong)[:30]
            notes.append(f"Confidence is higher where {outcome.column} is '{shown}'.")
        if outcome.inverted and found.auroc < 0.45 and found.z < -3:
            doubts.append("direction")
        return Choice((said,), outcome, score, tuple(dict.fromkeys(doubts)), tuple(notes), found)

    # -- the margin -------------------------------------------------------------------------

    def _add_methods(self, best: Choice, choices: Sequence[Choice]) -> None:
        """Add further confidences that are as strong: they are methods and no question."""
        first = best.said[0]
        if first.score < _SAID_LEAST or first.doubt or first.probs:
            return
        for choice in choices[1:]:
            said, found = choice.said[0], choice.match
            if choice.outcome is not best.outcome or said.doubt or said.probs or found is None:
                continue
            named = said.named >= 2 or (first.named < 2 and found.auroc > 0.55 and found.z > 3)
            strong = said.score >= max(_SAID_LEAST, first.score - _ROLE_MARGIN)
            if found.n < best.matches[0].n / 2:
                continue
            if named and strong and self.columns[said.column].distinct > 1 and len(best.said) < 6:
                best.said += (said,)
                best.notes += tuple(note for note in said.notes if note not in best.notes)

    def _rivals(self, best: Choice, choices: Sequence[Choice]) -> list[Choice]:
        mine, near = {said.column for said in best.said}, []
        for rival in choices[1:]:
            said, outcome = rival.said[0], rival.outcome
            if rival.models or (outcome is best.outcome and said.column in mine):
                continue
            if said.score < 2 or outcome.score < 1.9:
                continue
            if self._beats(best, rival, mine):
                continue
            near.append(rival)
        return near

    def _beats(self, best: Choice, rival: Choice, mine: set[str]) -> bool:
        """Return whether the best reading is clear of another."""
        said, outcome, first = rival.said[0], rival.outcome, best.said[0]
        whose = "whose" in best.doubts and outcome is best.outcome and "whose" not in rival.doubts
        explicit = not outcome.pair and outcome.score >= 2 and not outcome.graded
        told = best.outcome.pair and explicit and said.column in mine
        told = told or ("which" in best.doubts and explicit and outcome.score >= 2.9)
        if best.score - rival.score >= _MARGIN and not whose and not told:
            return True
        other = outcome is not best.outcome
        apart = best.outcome.score - outcome.score >= _ROLE_MARGIN
        if other and said.column in mine and apart and not told:
            return True
        if other and say_the_same(best.outcome, outcome):
            return True
        return not other and first.score - said.score >= _ROLE_MARGIN and not whose

    def _of_one_model(self, best: Choice) -> list[Choice]:
        """Return readings of a confidence that has an outcome of its own among several."""
        if len(best.said) < 2:
            return []
        own = {model_key(o.column, GRADE_ROLES): o for o in self.all_outcomes if not o.pair}
        models = {model_key(said.column, SAID_ROLES): said for said in best.said}
        return [
            Choice((said,), own[model], best.score - 1)
            for model, said in models.items()
            if model and model in own and own[model].column != best.outcome.column
        ]

    def _is_weak(self, best: Choice, near: Sequence[Choice]) -> bool:
        """Return whether names and content together do not carry the reading."""
        said, outcome, found = best.said[0], best.outcome, best.match
        weak = said.score < _SAID_LEAST or outcome.score < _OUTCOME_LEAST
        if said.probs or found is None:
            return weak
        agrees = found.auroc > 0.55 and found.z > 3
        if outcome.pair:
            return weak or (said.named < 2 and not agrees)
        roles = name_roles(outcome.column)
        known = outcome.score >= 3.2 and bool({*outcome.right} & _PLAIN)
        core = roles.graded >= 2.9 or outcome.verified or known
        linked = are_linked(said, outcome)
        surely = linked and agrees and found.z > 4
        if surely and said.score >= 2.5 and outcome.score >= 1.9 and not outcome.doubt:
            weak = False
        if surely and outcome.doubt == "unsure" and not outcome.notes:
            best.doubts = tuple(doubt for doubt in best.doubts if doubt != "unsure")
        # A similarity to the right answer goes with the outcome, and is no confidence.
        measured = name_roles(said.column).measure and not linked
        if said.named < 2 and (measured or not (agrees and (core or linked))):
            weak = True
        if not core and not linked and not agrees:
            weak = True
        if agrees and said.named >= 2.5 and not near and self._is_alone(outcome):
            return False
        strong = said.named >= 2.5 and not outcome.doubt and outcome.score >= 2 and not near
        if weak and strong and roles.right >= 1 > roles.gold and found.auroc > 0.6 and found.z > 4:
            best.notes += (f"{outcome.column} goes with the confidence: it is the outcome.",)
            return False
        return weak

    def _is_alone(self, outcome: OutcomeCandidate) -> bool:
        """Return whether nothing else may be the outcome, and the name does not speak against it.

        A column `y` of 0 and 1 is then what the confidence, which it goes with, is about.
        """
        others = [o for o in self.outcomes if o.score >= _LEAST_OUTCOME and o is not outcome]
        usual = not (outcome.doubt or outcome.graded or outcome.happened)
        return usual and not others and not self.pairs and name_roles(outcome.column).right >= 1

    def _with_left_out(self, best: Choice) -> Choice:
        """Say what could have been used and was not."""
        mine = {said.column for said in best.said}
        left = [
            outcome.column
            for outcome in self.outcomes
            if outcome.score >= _OUTCOME_LEAST and outcome.column not in self.made
            and outcome.column != best.outcome.column and not say_the_same(outcome, best.outcome)
        ]  # fmt: skip
        left += [c.column for c in self.said if c.score >= _SAID_LEAST and c.column not in mine]
        notes = best.notes
        if left:
            notes += (f"Not used: {', '.join(dict.fromkeys(left))}.",)
        if self.made:
            shown = ", ".join(sorted(self.made))
            notes += (f"{shown} follows from the confidence and is no outcome.",)
        return structs.replace(best, notes=notes)

    def _lacking(self) -> str:
        said = [c.column for c in self.said if c.score >= 2]
        graded = [o.column for o in (*self.outcomes, *self.pairs) if o.score >= 1.9]
        if said and graded:
            return f"{said[0]} and {graded[0]} do not belong to the same rows"
        if said:
            return "outcome:" + ",".join(said[:3])
        return "confidence:" + ",".join(graded[:3]) if graded else ""


def _is_turned(choice: Choice) -> bool:
    """Return whether confidence is higher where a column with a neutral name says wrong."""
    found, outcome = choice.match, choice.outcome
    known = outcome.pair or outcome.verified or name_roles(outcome.column).graded >= _CORE
    return found is not None and found.z < -_SURELY and not known


def _by_evidence(choices: Sequence[Choice]) -> list[Choice]:
    """Return readings in the order of what speaks for them, beside names how well they go together.

    Whose confidence it is, and what was done with an answer, is asked about last.
    """

    def weight(choice: Choice) -> float:
        found = choice.matches[0]
        neutral = not (choice.outcome.pair or name_roles(choice.outcome.column).graded >= _CORE)
        together = 1.5 * ((found.z > _SURELY) - (found.z < -_SURELY)) if neutral else 0.0
        strange = 1.5 * bool({"whose", "decision"} & {choice.said[0].doubt, choice.outcome.doubt})
        return choice.score + together - strange

    return sorted(choices, key=weight, reverse=True)


def _graded_first(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """Return readings with a column of grades before the one that compares two columns."""
    first = choices[0]
    if not first.outcome.pair:
        return tuple(choices)
    graded = [
        choice
        for choice in choices
        if not (choice.outcome.pair or choice.doubts or choice.outcome.doubt)
        and choice.said[0].column == first.said[0].column
        and choice.outcome.score >= _OUTCOME_LEAST
    ]
    return (*graded, *(choice for choice in choices if choice not in graded))


_PLAIN = frozenset(["correct", "pass", "passed", "👍", "right", "✓", "thumbs_up"])


def _names_models(column: Column) -> bool:
    return bool({*column.tokens[-1:]} & {"model", "llm", "engine"}) and not column.numeric


def _chosen(said: SaidCandidate) -> SaidCandidate:
    """Return a confidence that somebody named: only its scale may be asked about."""
    doubt = "" if said.doubt in ("whose", "unsure", "uncertainty", "logprob") else said.doubt
    return structs.replace(said, score=9.0, named=9.0, doubt=doubt)


def _known(outcome: OutcomeCandidate) -> OutcomeCandidate:
    """Return an outcome that somebody named: only its words may be asked about."""
    doubt = "" if outcome.doubt in ("decision", "unsure", "leftover") else outcome.doubt
    return structs.replace(outcome, score=outcome.score + 6, doubt=doubt)


def _agree(left: OutcomeCandidate, right: OutcomeCandidate) -> bool:
    count, same = agreement(left, right)
    return count <= 20 or same >= 0.97
