"""Scores from how often each meaning is drawn, and from what the draws have not seen."""

from dataclasses import replace

import numpy as np

from calibrant.answers.confidence import method
from calibrant.answers.confidence.columns import gather, ratio, sum_by
from calibrant.answers.confidence.compact import DrawBlock, DrawTable
from calibrant.core.arrays import Floats, Ints, Mask, named_stream
from calibrant.metrics.stats.splits import SplitLaw, exact_cost, sample_splits, split_law

_AFFORDABLE = 1e10  # multiplications, some ten seconds
_FALLBACK_SPLITS = 200


def class_entropy(block: DrawBlock, mass: Floats | None = None) -> Floats:
    """Return the Shannon entropy (nats) of each unit's classes.

    Parameters
    ----------
    block
        Draws with meanings.
    mass
        Weight of each class; None: its number of draws.

    Returns
    -------
    array
        In [0, ln of the number of classes]; NaN for units without mass.
    """
    classes = block.classes
    weight = classes.count.astype(np.float64) if mass is None else mass
    total = sum_by(classes.unit, weight, block.n_units)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = weight / total[classes.unit]
        terms = np.where(share > 0, -share * np.log(share), 0.0)
    terms = np.where(np.isnan(share), np.nan, terms)
    entropy = sum_by(classes.unit, terms, block.n_units)
    return np.where(total > 0, np.maximum(entropy, 0.0), np.nan)


def modal_share(block: DrawBlock) -> Floats:
    """Return the share of each unit's most frequent class among all its draws."""
    classes = block.classes
    return ratio(gather(classes.count.astype(np.float64), classes.modal), classes.total)


def agreement_with(block: DrawBlock, target: Ints, weight: Floats | None = None) -> Floats:
    """Return the (weighted) share of each unit's draws that have the meaning `target`."""
    weights = np.ones(len(block)) if weight is None else weight
    hit = (block.class_id == target[block.unit]) & (block.class_id >= 0)
    total = sum_by(block.unit, weights, block.n_units)
    agreeing = sum_by(block.unit, np.where(hit, weights, 0.0), block.n_units)
    return ratio(agreeing, total)


def greedy_agreement(
    table: DrawTable, purpose: str = "samples", weight: Floats | None = None
) -> Floats:
    """Return the (weighted) share of draws that mean the same as the greedy answer."""
    block, target = table.block(purpose), table.greedy.first_class
    return method.answered((target >= 0) & (block.count > 0), agreement_with(block, target, weight))


@method.register
def consistency(table: DrawTable, options: method.Options) -> method.Scored:
    """Share of the modal class.

    The ``paper`` variant is the share of samples that mean the same as the greedy answer, and it
    is about the greedy answer.
    """
    if options.variant == "paper":
        return method.about_greedy(greedy_agreement(table), table)
    return method.about_modal(modal_share(table.samples), table)


@method.register
def sem1(table: DrawTable, _: method.Options) -> method.Scored:
    """Largest class frequency of the pool, equal to consistency.

    Where several classes are equally frequent, the grade is the mean of theirs: the answer that
    is named first is one of them by chance.
    """
    block = table.samples
    scored = method.about_modal(modal_share(block), table)
    return replace(scored, correct=np.where(scored.row >= 0, _mode_grade(block), np.nan))


def _mode_grade(block: DrawBlock) -> Floats:
    """Mean grade of the classes that are as frequent as the modal one; NaN where one has none."""
    classes = block.classes
    if not classes.count.size:
        return np.full(block.n_units, np.nan)
    top = gather(classes.count.astype(np.float64), classes.modal)
    tied = classes.answered & (classes.count == top[classes.unit])
    number = sum_by(classes.unit[tied], np.ones(int(tied.sum())), block.n_units)
    return ratio(sum_by(classes.unit[tied], classes.correct[tied], block.n_units), number)


@method.register
def sem2(table: DrawTable, options: method.Options) -> method.Scored:
    """Mean held-out frequency of the class that the selection block chooses.

    One number per unit, the mean over all splits. Splits may choose different classes, so the
    grade is the mean grade of the chosen classes: a number in [0, 1]. The answer named is the
    class chosen most often. Classes that tie inside a block count for equal shares. The
    ``paper`` variant draws 10 random half-splits.
    """
    block = table.samples
    value, correct = np.full((2, block.n_units), np.nan)
    row = np.full(block.n_units, -1)
    counts, free = block.classes.table()
    pool = block.count
    size = pool // 2 if options.block is None else np.full(pool.shape, options.block)
    usable = np.flatnonzero((size >= 1) & (size < pool))
    if usable.size:
        law = _split_law(counts[usable], free[usable], size[usable], options)
        choice = law.selection.sum(axis=1) > 0
        value[usable] = law.confidence
        correct[usable] = law.mean_of(block.classes.spread(block.classes.correct, np.nan)[usable])
        witness = block.classes.spread(block.classes.row, -1)[usable]
        best = np.argmax(law.selection, axis=1)
        row[usable] = np.where(choice, witness[np.arange(usable.size), best], -1)
    return method.Scored(value, block, row, correct, "selected")


def _split_law(counts: Ints, free: Mask, size: Ints, options: method.Options) -> SplitLaw:
    splits = 10 if options.variant == "paper" and options.splits is None else options.splits
    if splits is None and exact_cost(counts, size) <= _AFFORDABLE:
        return split_law(counts, size, selectable=free)
    rng = named_stream(options.seed, "sem2")
    return sample_splits(counts, size, splits=splits or _FALLBACK_SPLITS, rng=rng, selectable=free)


@method.register
def first_run_consistency(table: DrawTable, _: method.Options) -> method.Scored:
    """Agreement of all runs with the first one; no score where the first run has no answer."""
    block = table.samples
    value = agreement_with(block, block.first_class)
    return method.about_first(method.answered(block.first_class >= 0, value), block, about="first")


@method.register
def sfca(table: DrawTable, options: method.Options) -> Floats:
    """Frequency mass of the classes at or above tau (constant 1 for tau = 0)."""
    classes = table.samples.classes
    share = classes.count / classes.total[classes.unit]
    mask = (share >= method.threshold("sfca", options)) & classes.answered
    # Whole counts are summed before the one division: shares could add up to just over 1.
    draws = sum_by(classes.unit, np.where(mask, classes.count, 0).astype(np.float64), len(table))
    return ratio(draws, classes.total)


@method.register
def discrete_semantic_entropy(table: DrawTable, _: method.Options) -> Floats:
    """Entropy of class frequencies turned into a confidence by exp(-H)."""
    return np.exp(-class_entropy(table.samples))


@method.register
def number_of_classes(table: DrawTable, _: method.Options) -> Floats:
    """Minus the number of classes, so that higher is surer."""
    classes = table.samples.classes
    return -np.bincount(classes.unit, minlength=len(table)).astype(np.float64)


def unseen_mass(block: DrawBlock) -> Floats:
    """Return Good and Turing's estimate of the probability of meanings not drawn yet.

    It is the share of draws whose meaning was drawn exactly once. The class of draws without an
    answer is a meaning like others.
    """
    classes = block.classes
    once = sum_by(classes.unit, classes.count == 1, block.n_units)
    return ratio(once, classes.total)


@method.register
def good_turing(table: DrawTable, _: method.Options) -> Floats:
    """Estimated coverage of the drawn meanings."""
    return 1.0 - unseen_mass(table.samples)


@method.register
def effective_answers(table: DrawTable, _: method.Options) -> Floats:
    """Minus exp(H): two equal meanings count as 2, a dominant one and a rare one as little more."""
    value = -np.exp(class_entropy(table.samples))
    return np.minimum(value, -1.0)


def predicted_k(block: DrawBlock, *, share: float = 0.1) -> Ints:
    """Return how many answers the model seems to have: meanings with at least this share.

    Examples
    --------
    >>> from calibrant.answers.confidence import Question, table_of
    >>> draws = ["rest"] * 12 + ["aspirin"] * 6 + ["tea", "vinegar"]
    >>> predicted_k(table_of([Question(classes=draws)]).samples).tolist()
    [2]
    """
    classes = block.classes
    large = (classes.count >= share * classes.total[classes.unit]) & classes.answered
    number = np.bincount(classes.unit[large], minlength=block.n_units)
    return np.maximum(number, 1).astype(np.int64)
