"""Questions that could be asked, and which of them are: spread out, none of them twice."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import combinations, zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.bench.questions.facts import FactSet
from calibrant.bench.questions.question import BenchQuestion, normalised
from calibrant.bench.questions.wording import Bounds
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
    return [_window_question(facts, subject, bounds) for subject, bounds in windows]


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


def _window_question(facts: FactSet, subject: str, bounds: Bounds) -> BenchQuestion:
    keys = facts.inside(subject, bounds) or set()
    names = facts.answers(subject)
    text = facts.wording.window_text(subject, bounds)
    meta = {"subjects": [subject], "lower": bounds[0], "upper": bounds[1]}
    return facts.question(text, [names[key] for key in keys], meta)


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
    choice = list(dict.fromkeys(_subject_sets(usable, k, cap, rng)))[:cap]
    return [_union_question(facts, subjects) for subjects in choice]


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


def _union_question(facts: FactSet, subjects: tuple[str, ...]) -> BenchQuestion:
    references = [names for subject in subjects for names in facts.answers(subject).values()]
    meta = {"subjects": list(subjects)}
    return facts.question(facts.wording.union_text(subjects), references, meta)


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
