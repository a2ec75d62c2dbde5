"""The judge that has learned to read: does an answer mean the same as a reference?

The small model with an adapter that was trained on people's verdicts (`studies/judge_train.py`).
It runs in numpy: no key, no network, no compiled runtime.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from importlib import resources
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.models.inference.llama import Llama, Tokenizer
from calibrant.models.inference.weights import Array, Gguf, weights_path

MODEL = "smollm2-135m-instruct"
ADAPTER = "judge_adapter.npz"
# As in training: longer texts lose their middle.
_MOST_CHARACTERS, _MOST_REFERENCES = 500, 8
_MOST_TOKENS, _KEPT_FIRST, _KEPT_LAST = 256, 180, 76
# Tokens of one step: enough that the weights are read once for many texts.
_STEP = 1_000
Floats = npt.NDArray[np.float64]
Group = tuple[list[int], list[list[int]]]


class MeaningQuery(NamedTuple):
    """One question to the judge: does the answer mean the same as one of the references?"""

    question: str
    references: tuple[str, ...]
    answer: str

    @property
    def prompt(self) -> str:
        r"""What the judge reads; its verdict is the state after the last token.

        Examples
        --------
        >>> MeaningQuery("Capital of Peru?", ("Lima",), "It is Lima.").prompt
        'Question: Capital of Peru?\nRight: Lima\nGiven: It is Lima.\nSame meaning?'
        """
        right = [text for text in map(str.strip, self.references) if text][:_MOST_REFERENCES]
        return (
            f"Question: {self.question.strip()}\nRight: {' | '.join(right)}\n"
            f"Given: {self.answer.strip()[:_MOST_CHARACTERS]}\nSame meaning?"
        )


def available() -> bool:
    """Return whether the weights were fetched, so that the judge can be asked."""
    try:
        return weights_path(MODEL).is_file()
    except InputError:
        return False


@dataclass
class EmbeddedJudge:
    """Tells how far an answer means the same as a reference, as log-odds.

    Parameters
    ----------
    kept
        A file in which scores are kept, so that no text is read twice.
    workers
        How many steps are computed side by side; by default one per core.
    tell
        Called with how many texts are read and how many there are.
    """

    kept: Path | None = None
    workers: int | None = None
    tell: Callable[[int, int], None] | None = None

    @cached_property
    def name(self) -> str:
        """Model and adapter, recorded beside what was decided with it."""
        packed = resources.files(__package__).joinpath(ADAPTER).read_bytes()
        return f"embedded judge {sha256(packed).hexdigest()[:12]}"

    def scores(self, asked: Sequence[tuple[str, tuple[str, ...], str]]) -> Floats:
        """Return log-odds that answers mean their references: of (question, references, answer)."""
        prompts = [MeaningQuery(*each).prompt for each in asked]
        keys = [_key(prompt) for prompt in prompts]
        missing = {k: text for k, text in zip(keys, prompts, strict=True) if k not in self._known}
        if missing:
            for texts, values in self._read(list(missing.values())):
                self._remember({_key(x): float(v) for x, v in zip(texts, values, strict=True)})
        return np.array([self._known[key] for key in keys], dtype=np.float64)

    def _read(self, prompts: Sequence[str]) -> Iterator[tuple[list[str], Array]]:
        """Yield texts with their scores, a step at a time."""
        from threadpoolctl import threadpool_limits  # loaded late: rules need nothing of it

        reader = _open_reader(weights_path(MODEL))
        steps, order = reader.steps(prompts)
        finished = 0
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
        with (
            threadpool_limits(1, user_api="blas"),
            ThreadPoolExecutor(self.workers or cores) as pool,
        ):
            for places, values in zip(order, pool.map(reader.score, steps), strict=True):
                finished += len(places)
                if self.tell is not None:
                    self.tell(finished, len(prompts))
                yield [prompts[place] for place in places], values

    @cached_property
    def _known(self) -> dict[bytes, float]:
        """What the file holds, and what was read since, by the key of the prompt."""
        if self.kept is None or not self.kept.is_file():
            return {}
        with closing(sqlite3.connect(self.kept)) as base:
            base.execute(_TABLE)
            query = "SELECT asked, score FROM scores WHERE judge = ?"
            return dict(base.execute(query, (self.name,)).fetchall())

    def _remember(self, scores: dict[bytes, float]) -> None:
        """Keep scores at once: a run that is stopped loses the step it is in, no more."""
        self._known.update(scores)
        if self.kept is None:
            return
        self.kept.parent.mkdir(parents=True, exist_ok=True)
        rows = [(self.name, key, score) for key, score in scores.items()]
        with closing(sqlite3.connect(self.kept)) as base, base:
            base.execute(_TABLE)
            base.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?, ?)", rows)


_TABLE = (
    "CREATE TABLE IF NOT EXISTS scores "
    "(judge TEXT, asked BLOB, score REAL, PRIMARY KEY (judge, asked)) WITHOUT ROWID"
)


def _key(prompt: str) -> bytes:
    return sha256(prompt.encode("utf-8", "replace")).digest()[:16]


class _Reader:
    """Weights in memory."""

    def __init__(self, path: Path) -> None:
        file = Gguf(path)
        settings = file.settings
        self._tokens = Tokenizer(
            settings["tokenizer.ggml.tokens"], settings["tokenizer.ggml.merges"]
        )
        with resources.as_file(resources.files(__package__).joinpath(ADAPTER)) as packed:
            stored = dict(np.load(packed))
        self._verdict, self._lean = stored["verdict"], float(stored["lean"])
        names = {name.rsplit(".", 1)[0] for name in stored if name.endswith(".inner")}
        depth = len(stored["ffn_up.inner"])
        changes: dict[str, tuple[Array, Array]] = {
            f"blk.{number}.{name}.weight": (
                stored[f"{name}.outer"][number].astype(np.float32),
                stored[f"{name}.inner"][number].astype(np.float32),
            )
            for name in names
            for number in range(depth)
        }
        self._model = Llama(file, changes, depth=depth)

    def steps(self, prompts: Sequence[str]) -> tuple[list[list[Group]], list[list[int]]]:
        """Return the texts in steps of like length, and the places that each step is about."""
        texts = [
            tokens if len(tokens) <= _MOST_TOKENS else tokens[:_KEPT_FIRST] + tokens[-_KEPT_LAST:]
            for tokens in map(self._tokens, prompts)
        ]
        joint: dict[str, list[int]] = {}
        for place, prompt in enumerate(prompts):
            joint.setdefault(prompt.rpartition("\nGiven: ")[0], []).append(place)
        groups = [(_shared([texts[p] for p in places]), places) for places in joint.values()]
        # Texts of like length waste little padding; the longest first, so that the end is even.
        groups.sort(key=lambda group: -max(len(texts[place]) for place in group[1]))
        steps: list[list[Group]] = []
        order: list[list[int]] = []
        for step in _filled(groups, texts):
            steps.append([(texts[p[0]][:n], [texts[x][n:] for x in p]) for n, p in step])
            order.append([place for _, places in step for place in places])
        return steps, order

    def score(self, step: list[Group]) -> Array:
        """Return the log-odds of each text of a step."""
        return np.asarray(self._model.last_states(step) @ self._verdict + self._lean)


# Once per process.
_open_reader = lru_cache(_Reader)


def _shared(texts: Sequence[Sequence[int]]) -> int:
    """Return how many tokens all texts begin with; each keeps one of its own."""
    if len(texts) < 2:
        return 0
    alike = takewhile(lambda column: len(set(column)) == 1, zip(*texts, strict=False))
    return min(sum(1 for _ in alike), min(map(len, texts)) - 1)


def _filled(
    groups: Sequence[tuple[int, list[int]]], texts: Sequence[Sequence[int]]
) -> Iterator[list[tuple[int, list[int]]]]:
    """Yield steps of about as many tokens; a large group is shared out over several."""
    step: list[tuple[int, list[int]]] = []
    holding = 0
    for shared, places in groups:
        part: list[int] = []
        holding += shared
        for place in places:
            part.append(place)
            holding += len(texts[place]) - shared
            if holding >= _STEP:
                yield [*step, (shared, part)]
                step, part, holding = [], [], shared
        if part:
            step.append((shared, part))
    if step:
        yield step
