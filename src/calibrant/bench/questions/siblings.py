"""Other things of the same type that are wrong for a question: the grader is told of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice

from calibrant.bench.questions.facts import FactSet
from calibrant.bench.questions.question import Question, normalised

MOST_SIBLINGS = 24
# Half of the list at most is for names alike, so that the usual wrong answers stay in it.
_MOST_ALIKE = 12
_LEAST_ALIKE = 0.3


class SiblingNames:
    """The objects of a relation, ready to be told apart from the right answers of a question.

    Names alike come first, because only these can be taken for a right answer; then the other
    objects of the question's own subject; then those with the most subjects, which a model
    names most often.

    Parameters
    ----------
    facts
        Facts of one relation.

    Examples
    --------
    >>> from calibrant.bench.questions.facts import Fact
    >>> rows = {"Inn": ["Austria"], "Congo": ["Republic of the Congo"],
    ...         "Ubangi": ["Democratic Republic of the Congo", "Austria"]}
    >>> facts = {name: tuple(Fact(name, obj) for obj in found) for name, found in rows.items()}
    >>> names = SiblingNames(FactSet("river", "flows_through", "a list", facts))
    >>> names.of([facts["Congo"][0].key])
    ('Democratic Republic of the Congo', 'Austria')
    """

    def __init__(self, facts: FactSet) -> None:
        self._facts = facts
        self._names: dict[str, tuple[str, ...]] = {}
        subjects: Counter[str] = Counter()
        for found in facts.facts.values():
            for fact in found:
                known = self._names.get(fact.key, ())
                self._names[fact.key] = tuple(dict.fromkeys((*known, fact.obj, *fact.aliases)))
            subjects.update({fact.key for fact in found})
        self._ranked = sorted(self._names, key=lambda key: (-subjects[key], key))
        self._forms = {k: {normalised(n) for n in names} for k, names in self._names.items()}
        self._pieces = {key: _pieces(names[0]) for key, names in self._names.items()}
        self._with_piece: dict[str, list[str]] = defaultdict(list)
        for key in self._ranked:
            for piece in self._pieces[key]:
                self._with_piece[piece].append(key)
        # Questions share their answers: what is alike is looked for once for each.
        self._alike_to: dict[str, dict[str, float]] = {}

    @property
    def known(self) -> Collection[str]:
        """Keys of all objects."""
        return self._names.keys()

    def told_to(self, question: Question) -> Question:
        """Return a question of these facts with the names of its wrong answers.

        The other objects of its subjects come early only where it has bounds: a question about
        several subjects asks for all that they have.
        """
        near = question.meta["subjects"] if self._facts.wording.bounded else ()
        right = [normalised(names[0]) for names in question.references]
        return replace(question, siblings=self.of(right, near))

    def of(self, right: Collection[str], near: Collection[str] = ()) -> tuple[str, ...]:
        """Return the names of up to 24 other objects, known not to be among the `right` keys.

        Parameters
        ----------
        right
            Keys of the right answers. An object that shares a name with one of them is left out.
        near
            Subjects of the question.
        """
        taken = set().union(*(self._forms[key] for key in right))
        close = (fact.key for subject in near for fact in self._facts.facts[subject])
        every = chain(islice(self._alike(right, taken), _MOST_ALIKE), close, self._ranked)
        free = (key for key in dict.fromkeys(every) if not self._forms[key] & taken)
        return tuple(self._names[key][0] for key in islice(free, MOST_SIBLINGS))

    def _alike(self, right: Iterable[str], taken: set[str]) -> Iterator[str]:
        """Yield objects whose names share many pieces with a right answer's, the most first."""
        likeness: dict[str, float] = {}
        for answer in right:
            if answer not in self._alike_to:
                self._alike_to[answer] = self._likeness(answer)
            for key, share in self._alike_to[answer].items():
                likeness[key] = max(likeness.get(key, 0.0), share)
        alike = [key for key in likeness if not self._forms[key] & taken]
        yield from sorted(alike, key=lambda key: (-likeness[key], key))

    def _likeness(self, answer: str) -> dict[str, float]:
        """Return the objects that are alike to an answer: the share of pieces they have in common.

        Of the shorter name: 'Virginia' is wholly inside 'West Virginia'.
        """
        own = self._pieces[answer]
        shared: Counter[str] = Counter()
        for piece in own:
            shared.update(self._with_piece[piece])
        shares = {k: n / min(len(own), len(self._pieces[k])) for k, n in shared.items()}
        return {key: share for key, share in shares.items() if share >= _LEAST_ALIKE}


def _pieces(name: str) -> frozenset[str]:
    """Return the letters of a name in overlapping threes, and its words."""
    words = name.lower().split()
    text = f" {' '.join(words)} "
    return frozenset(text[i : i + 3] for i in range(len(text) - 2)) | frozenset(words)
