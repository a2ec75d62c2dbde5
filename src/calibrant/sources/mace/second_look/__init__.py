"""A second look at a benchmark: sources and rules that its questions were not made from."""

from calibrant.sources.mace.second_look.look import second_look
from calibrant.sources.mace.second_look.spot import (
    read_ticks,
    spot_check,
    spot_page,
    spot_questions,
    write_spot_check,
)

__all__ = [
    "read_ticks",
    "second_look",
    "spot_check",
    "spot_page",
    "spot_questions",
    "write_spot_check",
]
