"""Use the common beginning of prompts again, but only where it changes no bit of the answer.

llama.cpp multiplies one row by another routine than several rows, so a prompt whose last token
alone is computed anew has other log-probs (by up to 0.2) than one computed as a whole. As long as
two tokens or more are computed, and all of them in one batch, the results were seen to be the same
to the last bit. That is checked here once for every loaded model, and watched in every answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import orjson

from calibrant.core.errors import PermanentClientError

UBATCH = 512
"""Tokens that are computed in one batch; a longer prompt is split, so it is not cached."""
FEWEST = 2
REMEMBERED = 4096
BEGINNING = "Rome is in Italy. Where is "
ENDINGS = ("Lima?", "old Lima?", "the old Lima?")


class PrefixCache:
    """Asks a llama.cpp server object with prompt caching where that is safe.

    Parameters
    ----------
    handle
        Takes the body of a chat completion, returns the answer.
    slots
        Draws that the server computes side by side; each keeps the last prompt it has seen.
    """

    def __init__(self, handle: Callable[[dict[str, Any]], Any], *, slots: int) -> None:
        self._handle = handle
        self._slots = slots
        self._in_slots: set[bytes] = set()
        self._looking = threading.Lock()
        self.safe = self._changes_nothing()

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer, the same as without any cache."""
        # The same prompt again would leave one token to compute: it is computed as a whole.
        prompt = orjson.dumps(body["messages"])
        cached = self._note(prompt, body.get("n", 1)) and self.safe
        answer = self._send(body, cached=cached)
        if cached and not _sound(answer):
            answer = self._send(body, cached=False)
        return answer

    def _note(self, prompt: bytes, n: int) -> bool:
        """Note what is in the slots from now on; return whether this prompt was not."""
        with self._looking:
            new = prompt not in self._in_slots
            if n >= self._slots or len(self._in_slots) >= REMEMBERED:
                self._in_slots.clear()
            self._in_slots.add(prompt)
        return new

    def _send(self, body: dict[str, Any], *, cached: bool) -> dict[str, Any]:
        answer = self._handle({**body, "cache_prompt": cached})
        error = answer.get("error") if isinstance(answer, dict) else {"message": repr(answer)}
        if error:
            raise PermanentClientError(f"the embedded model: {error.get('message')}")
        found: dict[str, Any] = answer
        return found

    def _changes_nothing(self) -> bool:
        """Whether prompts of several lengths give the same log-probs with their beginning cached.

        Some processors compute rows in groups, and a row at the end of a group differently:
        hence several lengths.
        """
        bodies = [
            {
                "messages": [
                    {"role": "system", "content": "Answer."},
                    {"role": "user", "content": BEGINNING + ending},
                ],
                "max_tokens": 1,
                "temperature": 0.0,
                "logprobs": True,
                "top_logprobs": 5,
            }
            for ending in ENDINGS
        ]
        try:
            plain = [_shown(self._send(body, cached=False)) for body in bodies]
            answers = [self._send(body, cached=True) for body in bodies]
        except PermanentClientError:
            return False  # a context too small for this check; caching would gain nothing there
        used = all(answer.get("timings", {}).get("cache_n") for answer in answers)
        return used and all(map(_sound, answers)) and plain == list(map(_shown, answers))


def _sound(answer: dict[str, Any]) -> bool:
    """Whether no part of the prompt was computed alone; an answer that does not tell is not."""
    timings = answer.get("timings") or {}
    if not timings.get("cache_n", 0):
        return "cache_n" in timings
    whole = timings["cache_n"] + timings["prompt_n"]
    return bool(timings["prompt_n"] >= FEWEST and whole <= UBATCH)


def _shown(answer: dict[str, Any]) -> Any:
    return answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
