"""Verified mass, panels of judges, and self-consistency as judged by a model."""

from __future__ import annotations

import numpy as np

from calibrant.confidence.compact import DrawBlock, DrawTable
from calibrant.confidence.method import Options, Scored, about_first, about_question, register
from calibrant.confidence.needs import verdicts
from calibrant.confidence.segments import count_by, mean_by, sum_by
from calibrant.core.arrays import Floats

_PANEL = "Verga et al. 2024 (panel of judges)"


@register(
    "share of draws that the model itself calls true: P(True) of each meaning times its share",
    needs=("samples", "clusters", "verified"),
    about="modal",
    question_level=True,
    reference="calibrant: P(True) of Kadavath et al. 2022, per meaning and summed",
)
def verified_mass(table: DrawTable, options: Options) -> Scored:
    """Sum over judged meanings of share times P(True), over the share that was judged.

    Several right answers are each called true and add up; several guesses are each called
    false. Consistency is low in both cases.
    """
    classes = table.samples.classes
    belief = verified_classes(table)
    judged = ~np.isnan(belief)
    share = classes.count.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = sum_by(
            classes.unit, np.where(judged, share * np.nan_to_num(belief), 0.0), len(table)
        ) / sum_by(classes.unit, np.where(judged, share, 0.0), len(table))
    return about_question(np.minimum(value, 1.0), table, options)


def verified_classes(table: DrawTable) -> Floats:
    """Return the mean P(True) of each drawn meaning; NaN where none of its texts was judged."""
    classes, block, samples = table.samples.classes, table.block("verified"), table.samples
    size = classes.unit.size
    if not len(block) or not len(samples):
        return np.full(size, np.nan)
    span = int(max(samples.class_id.max(), block.class_id.max())) + 2
    keys = samples.unit * span + samples.class_id + 1
    order = np.argsort(keys, kind="stable")
    wanted = block.unit * span + block.class_id + 1
    found = np.minimum(np.searchsorted(keys[order], wanted), order.size - 1)
    belief = verdicts(block)
    usable = (keys[order][found] == wanted) & ~np.isnan(belief)
    group = classes.group[order[found[usable]]]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean: Floats = sum_by(group, belief[usable], size) / count_by(group, size)
    return mean


def _panel(block: DrawBlock, values: Floats) -> Floats:
    return mean_by(block.unit, values, block.n_units)


@register(
    "mean P(True) that other models give to the greedy answer",
    needs=("greedy", "panel"),
    about="greedy",
    frequency=True,
    reference=_PANEL,
)
def panel_mean(table: DrawTable, _: Options) -> Scored:
    """Mean verdict of the other models."""
    block = table.block("panel")
    return about_first(_panel(block, verdicts(block)), table.greedy, about="greedy")


@register(
    "share of other models that call the greedy answer true",
    needs=("greedy", "panel"),
    about="greedy",
    frequency=True,
    reference=_PANEL,
)
def panel_vote(table: DrawTable, _: Options) -> Scored:
    """Share of judges with P(True) above one half; exactly one half counts half."""
    block = table.block("panel")
    belief = verdicts(block)
    vote = np.where(np.isnan(belief), np.nan, (belief > 0.5) + 0.5 * (belief == 0.5))
    return about_first(_panel(block, vote), table.greedy, about="greedy")


def panel_agreement(table: DrawTable) -> Floats:
    """Return per unit the share of pairs of judges with the same vote; NaN below two judges.

    Examples
    --------
    >>> from calibrant.confidence import Greedy, Question, table_of
    >>> question = Question(greedy=Greedy(answer="Lima"), panel=[0.9, 0.8, 0.2])
    >>> panel_agreement(table_of([question])).round(3).tolist()
    [0.333]
    """
    block = table.block("panel")
    belief = verdicts(block)
    read = ~np.isnan(belief)
    judges = sum_by(block.unit, read, len(table))
    yes = sum_by(block.unit, read & (belief > 0.5), len(table))
    no = judges - yes
    with np.errstate(divide="ignore", invalid="ignore"):
        agreement: Floats = (yes * (yes - 1) + no * (no - 1)) / (judges * (judges - 1))
    return agreement


@register(
    "share of samples that a judge says support the greedy answer",
    needs=("greedy", "selfcheck_votes"),
    about="greedy",
    frequency=True,
    reference="Manakul et al. 2023 (SelfCheckGPT with a prompt)",
)
def selfcheck_judge(table: DrawTable, options: Options) -> Scored:
    """Share of Yes among the verdicts 'is the answer supported by this sample?'."""
    block = table.block("selfcheck")
    vote = np.full(len(block), np.nan) if block.vote is None else block.vote
    failures = count_by(block.unit[np.isnan(vote)], len(table))
    if options.impute is not None:
        vote = np.where(np.isnan(vote), options.impute, vote)
    return about_first(_panel(block, vote), table.greedy, about="greedy", failures=failures)
