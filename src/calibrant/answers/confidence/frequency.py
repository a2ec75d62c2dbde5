"""Scores from how often each meaning is drawn, and from what a model states or is told."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import numpy as np

from calibrant.answers.confidence.columns import (
    count_by,
    first_argmax,
    gather,
    mean_by,
    ratio,
    sum_by,
    weighted_mean,
)
from calibrant.answers.confidence.compact import DrawBlock, DrawTable, class_entropy
from calibrant.answers.confidence.method import (
    Options,
    Scored,
    about_first,
    about_greedy,
    about_modal,
    answered,
    register,
    threshold,
)
from calibrant.core.arrays import Floats, Ints, Mask, named_stream
from calibrant.core.names import catalogue
from calibrant.metrics.stats.splits import SplitLaw, exact_cost, sample_splits, split_law

_AFFORDABLE = 1e10  # multiplications, some ten seconds
_FALLBACK_SPLITS = 200


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
    return answered((target >= 0) & (block.count > 0), agreement_with(block, target, weight))


@register
def consistency(table: DrawTable, options: Options) -> Scored:
    """Share of the modal class.

    The ``paper`` variant is the share of samples that mean the same as the greedy answer, and it
    is about the greedy answer.
    """
    if options.variant == "paper":
        return about_greedy(greedy_agreement(table), table)
    return about_modal(modal_share(table.samples), table)


@register
def sem1(table: DrawTable, _: Options) -> Scored:
    """Largest class frequency of the pool, equal to consistency.

    Where several classes are equally frequent, the grade is the mean of theirs: the answer that
    is named first is one of them by chance.
    """
    block, classes = table.samples, table.samples.classes
    scored = about_modal(modal_share(block), table)
    top = gather(classes.count.astype(np.float64), classes.modal)
    tied = classes.answered & (classes.count == top[classes.unit])
    number = count_by(classes.unit[tied], block.n_units)
    # Where one of them has no grade there is none.
    grade = ratio(sum_by(classes.unit[tied], classes.correct[tied], block.n_units), number)
    return replace(scored, correct=np.where(scored.row >= 0, grade, np.nan))


@register
def sem2(table: DrawTable, options: Options) -> Scored:
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
    return Scored(value, block, row, correct, "selected")


def _split_law(counts: Ints, free: Mask, size: Ints, options: Options) -> SplitLaw:
    splits = 10 if options.variant == "paper" and options.splits is None else options.splits
    if splits is None and exact_cost(counts, size) <= _AFFORDABLE:
        return split_law(counts, size, selectable=free)
    rng = named_stream(options.seed, "sem2")
    return sample_splits(counts, size, splits=splits or _FALLBACK_SPLITS, rng=rng, selectable=free)


@register
def first_run_consistency(table: DrawTable, _: Options) -> Scored:
    """Agreement of all runs with the first one; no score where the first run has no answer."""
    block = table.samples
    value = agreement_with(block, block.first_class)
    return about_first(answered(block.first_class >= 0, value), block, about="first")


@register
def sfca(table: DrawTable, options: Options) -> Floats:
    """Frequency mass of the classes at or above tau (constant 1 for tau = 0)."""
    classes = table.samples.classes
    share = classes.count / classes.total[classes.unit]
    mask = (share >= threshold("sfca", options)) & classes.answered
    # Whole counts are summed before the one division: shares could add up to just over 1.
    draws = sum_by(classes.unit, np.where(mask, classes.count, 0).astype(np.float64), len(table))
    return ratio(draws, classes.total)


@register
def discrete_semantic_entropy(table: DrawTable, _: Options) -> Floats:
    """Entropy of class frequencies turned into a confidence by exp(-H)."""
    return np.exp(-class_entropy(table.samples))


@register
def number_of_classes(table: DrawTable, _: Options) -> Floats:
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


@register
def good_turing(table: DrawTable, _: Options) -> Floats:
    """Estimated coverage of the drawn meanings."""
    return 1.0 - unseen_mass(table.samples)


@register
def effective_answers(table: DrawTable, _: Options) -> Floats:
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


def _stated(block: DrawBlock, options: Options) -> tuple[Floats, Ints]:
    """Return stated confidences and the number of unreadable ones per unit."""
    missing = np.isnan(block.stated)
    failures = count_by(block.unit[missing], block.n_units)
    if options.impute is None:
        return block.stated, failures
    return np.where(missing, options.impute, block.stated), failures


def _once(table: DrawTable, options: Options, *, purpose: str) -> Scored:
    """Stated confidence of the answer in the same text, or of the greedy answer in a second turn.

    Of a list it is the largest one, about that entry. The ``paper`` variant of verb and verb_topk
    keeps the number but grades the greedy answer of another prompt, as the published MACE
    numbers do: the two answers are often different ones.
    """
    block = table.block(purpose)
    confidence, failures = _stated(block, options)
    value = block.of_first(confidence)
    if purpose.startswith("self_ask") or options.variant == "paper":
        return about_greedy(value, table, failures)
    return about_first(value, block, about="own", failures=failures)


for _purpose in ("verb", "verb_topk", "self_ask", "self_ask_cand"):
    register(partial(_once, purpose=_purpose), _purpose)


@register
def verb_mean(table: DrawTable, options: Options) -> Scored:
    """Mean stated confidence of the modal answer over repeated texts.

    The ``paper`` variant takes the mean over all texts, whichever answer they give.
    """
    block = table.block("verb_samples")
    confidence, failures = _stated(block, options)
    if options.variant == "default" and len(block):
        confidence = answered(block.classes.group == block.classes.modal[block.unit], confidence)
    scored = about_modal(mean_by(block.unit, confidence, len(table)), table, "verb_samples")
    return replace(scored, failures=failures)


def _weighted(table: DrawTable, options: Options, *, purpose: str) -> Scored:
    """Share of stated confidence that goes to the answer with the largest weight.

    The ``paper`` variant is the weight of the greedy answer of another prompt.
    """
    block = table.block(purpose)
    confidence, failures = _stated(block, options)
    weight = np.where(np.isnan(confidence), 0.0, confidence)
    if options.variant == "paper":
        return about_greedy(greedy_agreement(table, purpose, weight), table, failures)
    classes = block.classes
    mass = sum_by(classes.group, weight, classes.unit.size)
    best = first_argmax(mass, classes.unit, classes.answered & (mass > 0), len(table))
    value = ratio(gather(mass, best), sum_by(block.unit, weight, len(table)))
    grade = gather(classes.correct, best)
    return Scored(value, block, classes.draw_of(best), grade, "modal", failures=failures)


register(partial(_weighted, purpose="verb_samples"), "consistency_verb")
register(partial(_weighted, purpose="verb_topk_samples"), "consistency_verb_topk")


@register
def linguistic_confidence(table: DrawTable, _: Options) -> Floats:
    """Least certain of the words for certainty in the greedy answer's text; 0.9 without one.

    Undefined where fewer than one text in twenty has such a word: these answers do not hedge.
    """
    block = table.greedy
    texts = (block.answer if block.text is None else block.text).fill_null("").to_list()
    hedges = [(re.compile(rf"\b(?:{words})\b", re.I), v) for words, v in catalogue()["hedges"]]
    certainty = [min((v for h, v in hedges if h.search(text)), default=np.nan) for text in texts]
    value = block.of_first(np.array(certainty, dtype=np.float64))
    if not value.size or np.isnan(value).mean() > 0.95:
        return np.full(len(table), np.nan)
    return answered(block.first >= 0, np.nan_to_num(value, nan=0.9))


def _votes(table: DrawTable, options: Options, *, purpose: str) -> Scored:
    """Return the share of True among the verdicts that can be read."""
    block = table.block(purpose)
    missing = np.isnan(block.vote)
    vote = block.vote if options.impute is None else np.where(missing, options.impute, block.vote)
    value = mean_by(block.unit, vote, len(table))
    return about_greedy(value, table, failures=count_by(block.unit[missing], len(table)))


def _true_mass(table: DrawTable, options: Options, *, purpose: str) -> Floats:
    """Return the probability of the token True; what goes to other words counts against it.

    The ``paper`` variant is normalised over True and False, as the authors' code has it.
    """
    # All draws of a probe share the prompt.
    block = table.block(purpose)
    yes, no = block.of_first(block.true_mass), block.of_first(block.false_mass)
    return ratio(yes, yes + no) if options.variant == "paper" else yes


register(partial(_votes, purpose="p_true"), "p_true_consistency")
register(partial(_votes, purpose="p_true_cand"), "p_true_consistency_cand")
register(partial(_true_mass, purpose="p_true"), "p_true_prob")
register(partial(_true_mass, purpose="p_true_cand"), "p_true_prob_cand")


@register
def p_true_ratio(table: DrawTable, _: Options) -> Floats:
    """Next-token probability of True among True and False only."""
    return _true_mass(table, Options(variant="paper"), purpose="p_true")


@register
def verified_mass(table: DrawTable, _: Options) -> Floats:
    """Sum over judged meanings of share times P(True), over the share that was judged.

    Several right answers are each called true and add up; several guesses are each called
    false. Consistency is low in both cases.
    """
    classes = table.samples.classes
    belief = verified_classes(table)
    share = np.where(np.isnan(belief), 0.0, classes.count.astype(np.float64))
    value = weighted_mean(classes.unit, np.nan_to_num(belief), share, len(table))
    return np.minimum(value, 1.0)


def verified_classes(table: DrawTable) -> Floats:
    """Return the mean P(True) of each drawn meaning; NaN where none of its texts was judged."""
    classes, block, samples = table.samples.classes, table.block("verified"), table.samples
    size = classes.unit.size
    if not len(block) or not len(samples):
        return np.full(size, np.nan)
    span = int(max(samples.class_id.max(), block.class_id.max())) + 2
    keys = samples.unit * span + samples.class_id + 1
    order = np.argsort(keys, kind="stable")
    target = block.unit * span + block.class_id + 1
    place = np.minimum(np.searchsorted(keys[order], target), order.size - 1)
    belief = block.verdict
    usable = (keys[order][place] == target) & ~np.isnan(belief)
    group = classes.group[order[place[usable]]]
    return mean_by(group, belief[usable], size)


@register
def panel_mean(table: DrawTable, _: Options) -> Floats:
    """Mean verdict of the other models."""
    block = table.block("panel")
    return mean_by(block.unit, block.verdict, len(table))


@register
def panel_vote(table: DrawTable, _: Options) -> Floats:
    """Share of judges with P(True) above one half; exactly one half counts half."""
    block = table.block("panel")
    belief = block.verdict
    vote = np.where(np.isnan(belief), np.nan, (belief > 0.5) + 0.5 * (belief == 0.5))
    return mean_by(block.unit, vote, len(table))


def panel_agreement(table: DrawTable) -> Floats:
    """Return per unit the share of pairs of judges with the same vote; NaN below two judges.

    Examples
    --------
    >>> from calibrant.answers.confidence import Greedy, Question, table_of
    >>> question = Question(greedy=Greedy(answer="Lima"), panel=[0.9, 0.8, 0.2])
    >>> panel_agreement(table_of([question])).round(3).tolist()
    [0.333]
    """
    block = table.block("panel")
    belief = block.verdict
    read = ~np.isnan(belief)
    judges = sum_by(block.unit, read, len(table))
    yes = sum_by(block.unit, read & (belief > 0.5), len(table))
    no = judges - yes
    return ratio(yes * (yes - 1) + no * (no - 1), judges * (judges - 1))


register(partial(_votes, purpose="selfcheck"), "selfcheck_judge")
