"""Which draws one call asks for."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from calibrant.clients.protocol import Request


def for_draws(request: Request, first: int, n: int) -> Request:
    """Return the request for these draws: draw i has the seed of the request plus i."""
    seed = request.seed
    if n == request.n and (seed is None or not first):
        return request
    return replace(request, n=n, seed=None if seed is None else seed + first)


def split_draws(draws: Sequence[int], most: int) -> list[list[int]]:
    """Split sorted draw indices into runs without gaps, of at most `most`.

    Without gaps, because choice i of a call uses the seed of the call plus i: a draw then has
    the same seed however the draws were shared among calls.

    Examples
    --------
    >>> split_draws([0, 1, 2, 5, 6, 7, 8], 3)
    [[0, 1, 2], [5, 6, 7], [8]]
    """
    runs: list[list[int]] = []
    for draw in draws:
        if runs and len(runs[-1]) < most and draw == runs[-1][-1] + 1:
            runs[-1].append(draw)
        else:
            runs.append([draw])
    return runs
