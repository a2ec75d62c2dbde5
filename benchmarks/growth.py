"""Reading twice as much text takes about twice as long, whatever the text is made of.

Every function that meets raw text reads texts of one piece said often, at two lengths. The part
fails where the work grows faster than the text; it writes no page.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from simulations.text_storm import PUMPS, readers

from calibrant.answers.confidence.likeness import rouge_l
from calibrant.answers.confidence.longform import split_claims
from calibrant.data.logs.log import stated_percent
from calibrant.data.texts import spells
from calibrant.models.endpoints.secrets import KeyFinder

# What reads long answers, logs and the answers of endpoints beside the readers of the storm.
READERS: dict[str, Callable[[Any], Any]] = readers() | {
    "KeyFinder": KeyFinder("sk-Very/Secret+Key-0123456789").found_in,
    "spells": lambda text: spells([text], text + "x"),
    "spells, special tokens": lambda text: spells(["<|a|>" * len(text), "x"], text),
    "rouge_l": lambda text: rouge_l(text, text[1:]),
    "split_claims": split_claims,
    "stated_percent": stated_percent,
}
SIZE = 3000
# A pause of the machine spoils a try, and never all of them; work that is quadratic fails in all.
TRIES = 20
# One reading takes milliseconds: after this many seconds it is not slow, it does not end.
LONGEST = 60


def cpu_seconds(read: Callable[[str], Any], text: str) -> float:
    """Return the CPU time of this thread, so that other work on the machine does not count."""
    begin = time.thread_time()
    read(text)
    return time.thread_time() - begin


def grows_too_fast(read: Callable[[str], Any], head: str, pump: str, tail: str) -> bool:
    """Return whether work at 2n exceeds three times that at n, in every try.

    Quadratic work shows a ratio of 4 and, at this size, tens of milliseconds.
    """
    short, long = (head + pump * (size // len(pump)) + tail for size in (SIZE, 2 * SIZE))
    for _ in range(TRIES):
        # Readers that remember texts must not find them: each try has an ending of its own.
        ending = str(time.perf_counter_ns())
        if cpu_seconds(read, long + ending) <= 3 * cpu_seconds(read, short + ending) + 0.002:
            return False
    return True


@contextmanager
def ends(case: str) -> Iterator[None]:
    """Stop the whole part, with the name of the case, where a reading does not end."""

    def stop(*_: object) -> None:
        raise SystemExit(f"a reading did not end within {LONGEST} s: {case}")

    if not hasattr(signal, "SIGALRM"):  # Windows
        yield
        return
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)


def main() -> None:
    """Fail with the readers and the texts whose work grows too fast."""
    slow = []
    for name, read in READERS.items():
        for pump in PUMPS:
            for head, tail in (("", ""), ("", "\x01z"), ("a ", " z")):
                case = f"{name}: {head!r} {pump!r} {tail!r}"
                with ends(case):
                    if grows_too_fast(read, head, pump, tail):
                        slow.append(case)
    if slow:
        raise SystemExit("work grows faster than the text:\n" + "\n".join(slow))
    print(f"   {len(READERS)} readers, {len(PUMPS)} pieces: none grows faster than its text")


if __name__ == "__main__":
    main()
