"""Blocks of few rows, worked on together: what is the same work for all of them is done once.

A table may hold thousands of models with a few answers each. Preparing a short array then takes
longer than working on it, so that arrays of many models are put one above the other.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from calibrant.core.arrays import Floats, Indices
from calibrant.metrics.blocks.row_block import RowBlock
from calibrant.metrics.corp import calibrated_bands
from calibrant.metrics.intervals.corp import corp_intervals
from calibrant.metrics.intervals.gap import gap_intervals, half_highs
from calibrant.metrics.intervals.gap_model import matched_errors
from calibrant.metrics.intervals.smooth import smooth_intervals
from calibrant.metrics.perfect import calibration_tests
from calibrant.metrics.stats import ranking
from calibrant.metrics.stats.common_draws import CommonDraws, Stream

# Values by block, and the influence of its rows on them.
Ranking: TypeAlias = tuple[Floats, Floats]


def work_ahead(blocks: Sequence[object], streams: Sequence[Stream]) -> None:
    """Give blocks of few rows what is listed or simulated for all of them at once.

    Every block gets what it would find by itself; other blocks are left as they are.

    Parameters
    ----------
    blocks
        Of one audit.
    streams
        Their streams of random numbers, which those of few rows share.
    """
    small, shared = [], None
    for block, stream in zip(blocks, streams, strict=True):
        if isinstance(block, RowBlock) and block.probability and isinstance(stream, CommonDraws):
            small.append(block)
            shared = stream
    if shared is None or len(small) == 1:
        return
    _add_intervals(small)
    plain = [block for block in small if block.data.weights is None]
    ungraded = [block for block in plain if not block.graded]
    bands = calibrated_bands([block.distinct for block in ungraded], small[0].level, shared)
    for block, band in zip(ungraded, bands, strict=True):
        block.band = band
    _add_tests([block for block in plain if block.independent])
    _add_rankings([block for block in plain if not (block.one_class or block.graded)])


def _add_intervals(blocks: Sequence[RowBlock]) -> None:
    level, resamples = blocks[0].level, blocks[0].resamples
    gaps = [block.gaps for block in blocks]
    of_ends, of_highs = zip(*(block.gap_streams for block in blocks), strict=True)
    ends = gap_intervals(gaps, of_ends, level, resamples)
    highs = half_highs(gaps, of_highs, level, resamples)
    smooth = smooth_intervals([block.smooth_task for block in blocks], level, resamples)
    matched = matched_errors([gap.stats for gap in gaps], [gap.likely_inflation for gap in gaps])
    corp = corp_intervals([block.corp_task for block in blocks], level)
    for number, block in enumerate(blocks):
        block.corp_ends = corp[number]
        block.gap_ends, block.half_highs = ends[number], highs[number]
        block.smooth_ends, block.matched = smooth[number], matched[number]


def _add_tests(blocks: Sequence[RowBlock]) -> None:
    """Test perfect calibration in the bins of the audit."""
    alike: defaultdict[tuple[int, Any], list[RowBlock]] = defaultdict(list)
    for block in blocks:
        alike[block.bins, block.data.confidence.dtype].append(block)
    for (bins, _), some in alike.items():
        tests = calibration_tests([block.data for block in some], bins=bins)
        for block, test in zip(some, tests, strict=True):
            block.calibration_test = test


def _add_rankings(blocks: Sequence[RowBlock]) -> None:
    """Rank answers, right or wrong; as many rows and scores are one above the other."""
    alike: defaultdict[tuple[int, int], list[RowBlock]] = defaultdict(list)
    for block in blocks:
        alike[block.data.rows, block.ranked.score.size].append(block)
    for some in alike.values():
        for name, (values, influences) in _rankings(some).items():
            for block, value, influence in zip(some, values.tolist(), influences, strict=True):
                block.ranking_ahead[name] = value, influence


def _rankings(some: Sequence[RowBlock]) -> dict[str, Ranking]:
    weight = np.stack([block.ranked.weight for block in some])
    outcome = np.stack([block.ranked.outcome for block in some])
    group = np.stack([block.ranked.group for block in some])
    right = np.stack([block.data.correct for block in some]).astype(np.float64)

    def rows(measured: tuple[Floats, ranking.Influence], group: Indices) -> Ranking:
        value, influence = measured
        parts = influence.constant, influence.slope
        constant, slope = (np.take_along_axis(part, group, axis=-1) for part in parts)
        return value, constant + slope * right

    risk, of_risk = rows(ranking.average_risk(weight, outcome), group)
    # The best order has all right answers before all wrong ones.
    hits = right.sum(axis=-1)
    both = np.stack([hits, right.shape[1] - hits], axis=-1)
    best = ranking.average_risk(both, both * np.array([1.0, 0.0]))
    least, of_least = rows(best, (right == 0).astype(np.intp))
    return {
        "auroc": rows(ranking.area_under_curve(weight, outcome), group),
        "auprc": rows(ranking.average_precision(weight, outcome), group),
        "aurc": (risk, of_risk),
        "e_aurc": (risk - least, of_risk - of_least),
    }
