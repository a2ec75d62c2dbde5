"""Is one method better than another: resampled differences of AUROC, several at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from scipy import special

from calibrant.bench.macro import Leaf, ScoreRows, macro_auroc
from calibrant.core.arrays import Array, Estimate, Floats, RngLike, as_generator, named_stream
from calibrant.core.errors import InputError
from calibrant.metrics.inputs import is_graded
from calibrant.metrics.stats.bootstrap import percentile_interval
from calibrant.metrics.stats.multiplicity import holm


class AreaDifference(Struct, frozen=True):
    """Difference of two AUROCs (first minus second), and how surely it is not 0.

    `p` is two-sided: twice the smaller share of draws on either side of 0, where one draw is
    added to each side, so that it is never 0. It is as coarse as the number of draws; what is
    corrected for many comparisons needs a finer one: `p_student` takes the spread of the draws,
    brought to all questions (`error`), and Student's law with `freedom` degrees.
    """

    difference: Estimate
    p: float
    p_student: float
    draws: int
    items: int
    error: float
    freedom: int


def compare_aurocs(
    first: tuple[Array, Array],
    second: tuple[Array, Array],
    parts: Sequence[Leaf],
    *,
    draws: int = 1_000,
    items: int | None = 1_000,
    level: float = 0.95,
    rng: RngLike = 0,
) -> AreaDifference:
    """Compare two methods on the same questions.

    In each draw, `items` questions are taken with replacement, shared by the parts in
    proportion to their sizes; both methods are scored on the same ones. A part that a draw
    leaves without right or without wrong answers is left out of that draw for both methods.

    Parameters
    ----------
    first, second
        Confidence and outcome of each method, row by row about the same questions. A fair
        comparison gives both the same outcomes: the grades of one and the same answer.
    parts
        Parts to pool within; one part with all rows gives the pooled test.
    draws, items
        Number of draws and of questions in each; None, and at most: as many as there are.
    level
        Coverage of the interval of the difference.
    rng
        Source of randomness.

    Examples
    --------
    >>> from calibrant.bench.macro import leaves
    >>> rng = np.random.default_rng(0)
    >>> right = (rng.random(400) < 0.5).astype(float)
    >>> good, bad = right + rng.normal(size=400), rng.normal(size=400)
    >>> compare_aurocs((good, right), (bad, right), leaves(["a"] * 400)).p < 0.01
    True
    """
    return _Draws(parts, draws, items, as_generator(rng)).comparison(first, second, level)


class _Draws:
    """Which questions each draw takes of the parts, and the AUROCs of methods there.

    Methods on the same questions meet the same draws, so each of them is looked up once.
    """

    def __init__(
        self, parts: Sequence[Leaf], draws: int, items: int | None, rng: np.random.Generator
    ) -> None:
        if draws < 100:
            raise InputError(f"a test needs at least 100 draws, got {draws}")
        self.parts = parts
        self.n = sum(leaf.rows.size for leaf in parts)
        # More questions than there are would promise a precision that the data do not have.
        self.items = self.n if items is None else min(items, self.n)
        self.times = []
        for leaf in parts:
            # Every part gives at least two questions: with fewer it has no AUROC at all.
            share = max(2, round(self.items * leaf.rows.size / self.n))
            selection = rng.integers(leaf.rows.size, size=(draws, share))
            self.times.append(_times_taken(selection, leaf.rows.size))
        self._known: dict[tuple[bytes, bytes], tuple[float, list[Floats]]] = {}

    def areas(self, score: Array, correct: Array) -> tuple[float, list[Floats]]:
        """Return the AUROC of a method on all questions, and by part those of the draws."""
        key = score.tobytes(), correct.tobytes()
        if key not in self._known:
            draws = [
                _resampled_areas(score[leaf.rows], correct[leaf.rows], times)
                for leaf, times in zip(self.parts, self.times, strict=True)
            ]
            self._known[key] = macro_auroc(score, correct, self.parts).estimate.value, draws
        return self._known[key]

    def comparison(
        self, first: tuple[Array, Array], second: tuple[Array, Array], level: float
    ) -> AreaDifference:
        """Compare two methods on these draws."""
        (one, ones_vector), (peer, peers) = self.areas(*first), self.areas(*second)
        gaps = self._gaps(ones_vector, peers)
        if gaps.size == 0 or math.isnan(one) or math.isnan(peer):
            nothing = Estimate(math.nan, math.nan, math.nan, n=self.n, level=level)
            return AreaDifference(
                nothing, math.nan, math.nan, int(gaps.size), self.items, math.nan, 1
            )
        low, high = percentile_interval(gaps, level)
        above = (1 + np.count_nonzero(gaps >= 0)) / (gaps.size + 1)
        below = (1 + np.count_nonzero(gaps <= 0)) / (gaps.size + 1)
        estimate = Estimate(
            one - peer, low, high, n=self.n, level=level, interval="bootstrap-percentile"
        )
        p = float(min(1.0, 2 * min(above, below)))
        rows = np.concatenate([leaf.rows for leaf in self.parts])
        # The rarer outcome limits what an AUROC rests on.
        right = [float(correct[rows].sum()) for _, correct in (first, second)]
        freedom = max(int(min(*right, *(self.n - hits for hits in right))) - 1, 1)
        # Draws of fewer questions vary more than the questions at hand do.
        spread = float(gaps.std(ddof=1)) * math.sqrt(self.items / self.n)
        student = _student_p(estimate.value, spread, freedom, p)
        return AreaDifference(estimate, p, student, int(gaps.size), self.items, spread, freedom)

    def _gaps(self, ones: Sequence[Floats], peers: Sequence[Floats]) -> Floats:
        """Return the difference of each draw that leaves a part with both AUROCs."""
        areas = np.array([ones, peers])
        defined = ~np.isnan(areas).any(axis=0)
        weight = defined * np.array([leaf.weight for leaf in self.parts])[:, None]
        sums = np.where(defined, weight * areas, 0.0).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            gaps: Floats = (sums[0] - sums[1]) / weight.sum(axis=0)
        selection: Floats = gaps[defined.any(axis=0)]
        return selection


def _student_p(difference: float, spread: float, freedom: int, p: float) -> float:
    """Return the two-sided p-value of the difference by Student's law.

    Degrees of freedom come from the rarer outcome: with a handful of right answers the draws
    show too little of their own spread, and only so does the test keep its level far out.
    """
    if spread == 0:
        return 1.0 if difference == 0 else p
    return float(2 * special.stdtr(freedom, -abs(difference) / spread))


def _times_taken(selection: NDArray[np.int64], size: int) -> NDArray[np.int32]:
    """Return how often each row is taken by each draw, shape (rows, draws)."""
    draws = selection.shape[0]
    place = draws * selection + np.arange(draws)[:, None]
    return np.bincount(place.ravel(), minlength=draws * size).astype(np.int32).reshape(size, draws)


def _resampled_areas(score: Array, correct: Array, times: NDArray[np.int32]) -> Floats:
    """Return the AUROC of each draw: wrong answers sorted once, looked up by the right ones.

    A grade between 0 and 1 is that much of a right answer, and the rest of a wrong one.
    """
    right, wrong = np.flatnonzero(correct > 0), np.flatnonzero(correct < 1)
    wrong = wrong[np.argsort(score[wrong], kind="stable")]
    hits, misses = times[right], times[wrong]
    if is_graded(correct):
        hits, misses = hits * correct[right, None], misses * (1 - correct[wrong, None])
    # Wrong answers of a draw below each place of their order.
    below = np.zeros((wrong.size + 1, times.shape[1]), misses.dtype)
    np.cumsum(misses, axis=0, out=below[1:])
    low, high = (np.searchsorted(score[wrong], score[right], side=s) for s in ("left", "right"))
    # Twice the pairs won, so that a tie counts one and all stays in whole numbers.
    beaten = below[low]
    beaten += below[high]
    won = np.einsum("ij,ij->j", hits, beaten, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        areas: Floats = won / (2.0 * hits.sum(axis=0) * below[-1])
    return areas


# A little below 5 %: the spread comes from draws, and what is said must be false in 5 % at most.
ALPHA = 0.04
_FAMILIES = (("p_student", "p_adjusted"), ("pooled_p_student", "pooled_p_adjusted"))


def correct_comparisons(tests: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Give every test its adjusted p-values, in place, and say what was done.

    All models, methods and mixes of a document are one family, because a reader looks for the
    smallest p among all of them; the tests on one pool of questions are another one. An
    undefined test claims nothing, and does not count.

    Examples
    --------
    >>> tests = [{"p_student": p, "pooled_p_student": p} for p in (0.01, 0.04, math.nan)]
    >>> correct_comparisons(tests)
    {'control': 'holm', 'alpha': 0.04, 'tests': 2}
    >>> [test["p_adjusted"] for test in tests]
    [0.02, 0.04, nan]
    """
    every = list(tests)
    for raw, adjusted in _FAMILIES:
        defined = [test for test in every if not math.isnan(test[raw])]
        for test in every:
            test[adjusted] = math.nan
        for test, value in zip(defined, holm([test[raw] for test in defined]), strict=True):
            test[adjusted] = float(value)
    number = sum(not math.isnan(test["p_student"]) for test in every)
    # So many tests together would show a difference of so many standard errors in 4 of 5 tables.
    reach = float(special.ndtri(1 - ALPHA / (2 * max(number, 1))) + special.ndtri(0.8))
    for test in every:
        test["detectable"] = reach * test.get("error", math.nan)
    return {"control": "holm", "alpha": ALPHA, "tests": number}


class Setting(Struct, frozen=True):
    """How methods are compared: draws of the test, questions in each, level, seed and model."""

    draws: int
    items: int
    level: float
    seed: int
    model: str


class _Mix:
    """The numbers of right answers whose questions are pooled, and the draws of those last met."""

    def __init__(self, ks: Sequence[int], setting: Setting) -> None:
        self.ks = ks
        self.setting = setting
        self._last: dict[str, tuple[list[bytes], _Draws]] = {}

    def draws(self, kind: str, parts: Sequence[Leaf]) -> _Draws:
        """Return the draws of a kind of test; they depend on the mix and the questions only."""
        rows, how = [leaf.rows.tobytes() for leaf in parts], self.setting
        if kind not in self._last or self._last[kind][0] != rows:
            rng = named_stream(how.seed, "test", how.model, kind, self.ks)
            self._last[kind] = rows, _Draws(parts, how.draws, how.items, rng)
        return self._last[kind][1]

    def pair(self, first: ScoreRows, second: ScoreRows) -> _Pair:
        """Return two methods on the questions of the mix that both have scored."""
        first, second = first.of_k(self.ks).shared(second)
        return _Pair(first, second, self)


class _Pair(Struct, frozen=True):
    """Two methods on the questions that both have scored."""

    first: ScoreRows
    second: ScoreRows
    mix: _Mix

    @property
    def n(self) -> int:
        return self.first.n

    @property
    def outcomes_differ(self) -> int:
        """Questions where the answers of the two methods have different grades."""
        return int(np.count_nonzero(self.first.correct != self.second.correct))

    def test(self, kind: str) -> AreaDifference:
        """Compare on the first method's answers by domain or in one pool, or on the second's."""
        pooled = [Leaf("all", None, np.arange(self.n), 1.0)]
        outcome = self.second.correct if kind == "own" else self.first.correct
        draws = self.mix.draws(kind, pooled if kind == "pooled" else self.first.domains())
        first, second = self.first.confidence, self.second.confidence
        return draws.comparison((first, outcome), (second, outcome), self.mix.setting.level)


def tests_against(
    rows: Mapping[str, ScoreRows], reference: str, mixes: Sequence[Sequence[int]], setting: Setting
) -> dict[str, list[dict[str, Any]]]:
    """Return by method its tests against the reference, one per mix."""
    tests: dict[str, list[dict[str, Any]]] = {name: [] for name in rows}
    for ks in mixes if reference in rows else ():
        mix = _Mix(ks, setting)
        n_reference = rows[reference].of_k(ks).n
        for name in filter(reference.__ne__, rows):
            pair = mix.pair(rows[reference], rows[name])
            if pair.n:
                tests[name].append(_entry(pair, reference, n_reference))
    return tests


_RESULT = ("difference", "p", "p_student")
_SPREAD = ("difference", "error", "freedom")


def _entry(pair: _Pair, reference: str, n_reference: int) -> dict[str, Any]:
    macro, pooled = pair.test("macro"), pair.test("pooled")
    own = pair.test("own") if pair.outcomes_differ else macro
    return {
        "mix": list(pair.mix.ks),
        "n": pair.n,
        "items": macro.items,
        "not_shared": n_reference - pair.n,
        **{name: getattr(macro, name) for name in (*_SPREAD, "p", "p_student")},
        **{f"pooled_{name}": getattr(pooled, name) for name in _RESULT},
        "outcome": f"the answer that {reference} is about",
        "outcomes_differ": pair.outcomes_differ,
        **{f"own_{name}": getattr(own, name) for name in _RESULT},
    }


def leading_method(
    rows: Mapping[str, ScoreRows], mix: Sequence[int], setting: Setting
) -> dict[str, object] | None:
    """Test the method with the largest AUROC against every other one.

    Whoever reads the largest of many numbers has chosen it, so its p-value is the largest of
    those against the others, times their number (Bonferroni): then it is at most as likely as
    that p-value that a method that is not the best of all is called so.

    Parameters
    ----------
    rows
        Scores of one model, by method.
    mix
        Numbers of right answers that are pooled.
    setting
        How to compare.
    """
    pooled = {name: scores.of_k(mix) for name, scores in rows.items()}
    areas = {
        name: macro_auroc(scores.confidence, scores.correct, scores.domains()).estimate.value
        for name, scores in pooled.items()
    }
    defined = [name for name, area in areas.items() if not math.isnan(area)]
    best, *peers = sorted(defined, key=lambda name: -areas[name]) or [""]
    if not peers:
        return None
    draws = _Mix(mix, setting)
    against, p_values = [], []
    for name in peers:
        pair = draws.pair(rows[best], rows[name])
        tests = [pair.test("macro")] if pair.n else []
        tests += [pair.test("own")] if pair.n and pair.outcomes_differ else []
        if not tests or any(math.isnan(test.p_student) for test in tests):
            continue
        # The comparison has to hold for the answers of either method.
        weakest = min(tests, key=_signed_distance)
        p_values.append(weakest.p_student if weakest.difference.value > 0 else 1.0)
        numbers = {part: getattr(weakest, part) for part in _SPREAD}
        against.append({"method": name, "n": pair.n, **numbers, "p_student": p_values[-1]})
    return {
        "model": setting.model,
        "method": best,
        "mix": list(mix),
        "methods": len(defined),
        "p_value": min(1.0, len(p_values) * max(p_values)) if p_values else None,
        "against": against,
    }


def _signed_distance(test: AreaDifference) -> float:
    """Return how many standard errors the difference lies above 0."""
    if test.error == 0:
        return math.copysign(math.inf, test.difference.value) if test.difference.value else 0.0
    return test.difference.value / test.error
