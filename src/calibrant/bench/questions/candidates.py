"""Questions that could be asked, and which of them are: spread out, none of them twice."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, combinations, islice, zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from calibrant.bench.questions.facts import FactSet, names_of
from calibrant.bench.questions.question import BenchQuestion, Bounds, normalised
from calibrant.core.errors import InputError, require_known


def window_candidates(
    facts: FactSet, k: int, cap: int, *, foreign: Collection[str] = (), rng: np.random.Generator
) -> list[BenchQuestion]:
    """Return up to `cap` candidate questions with exactly `k` right answers.

    All windows between recorded values are tried; those with too many or too few answers, an
    answer of another domain, or a value that lies across an end are left out. An award's
    window is used only where every year in it is on record.
    """
    windows = [
        (subject, bounds)
        for subject in facts.facts
        for bounds in _windows(facts, subject, k, foreign)
    ]
    if len(windows) > cap:
        choice = np.sort(rng.choice(len(windows), size=cap, replace=False))
        windows = [windows[index] for index in choice]
    questions = []
    for subject, bounds in windows:
        keys, names = facts.inside(subject, bounds) or set(), facts.answers(subject)
        text = facts.wording.window_text(subject, bounds)
        meta = {"subjects": [subject], "lower": bounds[0], "upper": bounds[1]}
        questions.append(facts.question(text, [names[key] for key in keys], meta))
    return questions


def _windows(facts: FactSet, subject: str, k: int, foreign: Collection[str]) -> Iterator[Bounds]:
    members = facts.facts[subject]
    yearly = facts.relation == "awarded_to"
    lows = sorted({fact.span[0] for fact in members})
    highs = sorted({fact.span[1] for fact in members})
    for lower in lows:
        for upper in (high for high in highs if high >= lower):
            if upper == lower and not facts.wording.words_one_value:
                continue
            certain = {f.key for f in members if lower <= f.span[0] and f.span[1] <= upper}
            gap = yearly and sum(lower <= year <= upper for year in lows) != upper - lower + 1
            if len(certain) > k or gap:
                break
            alone = len(certain) == k and certain.isdisjoint(foreign)
            if alone and facts.inside(subject, (lower, upper)) is not None:
                yield lower, upper


_MOST_SUBJECTS = 3
# Combinations tried per candidate wanted: disjoint triples of the right size are common.
_TRIES = 40


def union_candidates(
    facts: FactSet, k: int, cap: int, *, foreign: Collection[str] = (), rng: np.random.Generator
) -> list[BenchQuestion]:
    """Return up to `cap` candidate questions with exactly `k` right answers.

    Parameters
    ----------
    facts
        Facts of one relation; the answers of a subject are taken as exhaustive.
    k
        Number of right answers.
    cap
        Largest number of candidates.
    foreign
        Answers that belong to another domain; a subject that has one is not asked about.
    rng
        Source of randomness.
    """
    every = {subject: frozenset(facts.answers(subject)) for subject in facts.facts}
    usable = {
        subject: answers
        for subject, answers in every.items()
        if 0 < len(answers) <= k and answers.isdisjoint(foreign)
    }
    questions = []
    for subjects in list(dict.fromkeys(_subject_sets(usable, k, cap, rng)))[:cap]:
        references = [names for subject in subjects for names in facts.answers(subject).values()]
        text, meta = facts.wording.union_text(subjects), {"subjects": list(subjects)}
        questions.append(facts.question(text, references, meta))
    return questions


def _subject_sets(
    sets: dict[str, frozenset[str]], k: int, cap: int, rng: np.random.Generator
) -> Iterator[tuple[str, ...]]:
    """Yield subject sets whose united answers number k, by turns of one, two and three."""

    def disjoint(subjects: tuple[str, ...]) -> bool:
        return all(not sets[a] & sets[b] for a, b in combinations(subjects, 2))

    names = list(sets)
    if not names:
        return
    sizes = np.array([len(sets[name]) for name in names])
    singles = [(names[index],) for index in rng.permutation(np.flatnonzero(sizes == k))]
    kinds = [singles]
    for number in range(2, min(_MOST_SUBJECTS, k) + 1):
        draws = rng.integers(len(names), size=(cap * _TRIES, number))
        rows = draws[sizes[draws].sum(axis=1) == k][: 4 * cap]
        groups = (tuple(sorted(names[index] for index in row)) for row in rows)
        kinds.append([subjects for subjects in groups if disjoint(subjects)])
    for turn in zip_longest(*kinds):
        yield from (subjects for subjects in turn if subjects is not None)


STRATA = ("ngrams", "sentence", "random")
Embed = Callable[[Sequence[str]], npt.NDArray[Any]]


def without_duplicates(
    questions: Sequence[BenchQuestion],
) -> tuple[list[BenchQuestion], dict[str, int]]:
    """Return the questions without repetitions, and how many were exact or near duplicates.

    Near duplicates differ only in case, accents, punctuation or a leading article.
    """
    kinds = [kind for _, kind in repetitions(questions)]
    selection = [question for question, kind in zip(questions, kinds, strict=True) if not kind]
    times = {f"{kind} duplicate": kinds.count(kind) for kind in ("exact", "near")}
    return selection, {reason: count for reason, count in times.items() if count}


def repetitions(questions: Iterable[BenchQuestion]) -> Iterator[tuple[BenchQuestion, str]]:
    """Yield every question, and how it repeats one before it: ``exact``, ``near`` or not at all."""
    texts: set[str] = set()
    forms: set[str] = set()
    for question in questions:
        form = normalised(question.text)
        yield question, "exact" if question.text in texts else "near" if form in forms else ""
        texts.add(question.text)
        forms.add(form)


def choose(
    candidates: Sequence[BenchQuestion],
    count: int,
    strata: str,
    embed: Embed | None = None,
    *,
    rng: np.random.Generator,
) -> list[BenchQuestion]:
    """Return `count` of the candidates, or all when there are no more.

    Parameters
    ----------
    candidates
        Questions of one domain and k.
    count
        How many to keep.
    strata
        ``sentence``: k-means with `count` clusters over sentence embeddings, the candidate
        nearest to each centre. ``ngrams``: the same over character n-grams, which needs no
        further package. ``random``: a simple random sample.
    embed
        Texts to unit vectors, for ``sentence``.
    rng
        Source of randomness.
    """
    require_known([strata], STRATA, "unknown strata {}")
    if len(candidates) <= count:
        return list(candidates)
    if strata == "random":
        selection = np.sort(rng.choice(len(candidates), size=count, replace=False))
    else:
        texts = [question.text for question in candidates]
        if strata == "sentence":
            if embed is None:
                raise InputError("strata 'sentence' needs an embedder")
            vectors = embed(texts)
        else:
            vectors = _ngram_vectors(texts)
        selection = _nearest_to_centres(np.asarray(vectors, dtype=np.float64), count, rng)
    return [candidates[index] for index in selection]


def _ngram_vectors(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    from sklearn.feature_extraction.text import HashingVectorizer

    counts = HashingVectorizer(n_features=256, analyzer="char_wb", ngram_range=(3, 3))
    vectors: npt.NDArray[np.float64] = counts.transform(texts).toarray()
    return vectors


def _nearest_to_centres(
    vectors: npt.NDArray[np.float64], count: int, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Return `count` distinct rows: for every cluster the row nearest to its centre."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import pairwise_distances
    from threadpoolctl import threadpool_limits

    seed = int(rng.integers(2**31))
    clusters = min(count, len(np.unique(vectors.round(9), axis=0)))
    # One thread: sums in another order would make other clusters of the same seed.
    with threadpool_limits(limits=1):
        model = KMeans(clusters, init="random", n_init=1, max_iter=50, random_state=seed)
        model.fit(vectors)
        distance = pairwise_distances(vectors, model.cluster_centers_)
    to_centre = distance[np.arange(len(vectors)), model.labels_]
    order = np.lexsort((np.arange(len(vectors)), to_centre))
    _, first = np.unique(model.labels_[order], return_index=True)
    nearest = order[first]
    # Fewer clusters than questions (candidates with equal vectors): fill by distance.
    remainder = order[~np.isin(order, nearest)][: count - len(nearest)]
    return np.sort(np.concatenate([nearest, remainder]))


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
        self._names = names_of(chain.from_iterable(facts.facts.values()))
        subjects = facts.entities()
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

    def with_siblings(self, question: BenchQuestion) -> BenchQuestion:
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
        selection = set().union(*(self._forms[key] for key in right))
        close = (fact.key for subject in near for fact in self._facts.facts[subject])
        every = chain(islice(self._alike(right, selection), _MOST_ALIKE), close, self._ranked)
        free = (key for key in dict.fromkeys(every) if not self._forms[key] & selection)
        return tuple(self._names[key][0] for key in islice(free, MOST_SIBLINGS))

    def _alike(self, right: Iterable[str], selection: set[str]) -> Iterator[str]:
        """Yield objects whose names share many pieces with a right answer's, the most first."""
        likeness: dict[str, float] = {}
        for answer in right:
            if answer not in self._alike_to:
                self._alike_to[answer] = self._likeness(answer)
            for key, share in self._alike_to[answer].items():
                likeness[key] = max(likeness.get(key, 0.0), share)
        alike = [key for key in likeness if not self._forms[key] & selection]
        yield from sorted(alike, key=lambda key: (-likeness[key], key))

    def _likeness(self, answer: str) -> dict[str, float]:
        """Return the objects that are alike to an answer: the share of pieces they have in common.

        Of the shorter name: 'Virginia' is wholly inside 'West Virginia'.
        """
        pieces = self._pieces[answer]
        shared: Counter[str] = Counter()
        for piece in pieces:
            shared.update(self._with_piece[piece])
        shares = {k: n / min(len(pieces), len(self._pieces[k])) for k, n in shared.items()}
        return {key: share for key, share in shares.items() if share >= _LEAST_ALIKE}


def _pieces(name: str) -> frozenset[str]:
    """Return the letters of a name in overlapping threes, and its words."""
    words = name.lower().split()
    text = f" {' '.join(words)} "
    return frozenset(text[i : i + 3] for i in range(len(text) - 2)) | frozenset(words)
