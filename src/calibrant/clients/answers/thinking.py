"""Thinking is no part of the answer: it is kept apart, however an endpoint writes it."""

from __future__ import annotations

from typing import Any

from calibrant.clients.answers.odd import bounded_text
from calibrant.clients.answers.tokens import TokenLogprobs

MOST_THINKING = 100_000
"""Characters of thinking that are kept."""
BEGIN, END = "<think>", "</think>"
INSEPARABLE = "the tokens of the answer cannot be told from those of the thinking before it"


def split_thinking(text: str) -> tuple[str | None, str]:
    r"""Return the thinking at the beginning of a text, None where there is none, and the rest.

    Some servers put the opening mark into the prompt, so that only the closing one is seen. Without
    a closing mark everything is thinking: the answer was cut off before it began.

    Examples
    --------
    >>> split_thinking("<think>Peru: Lima.</think>\n\nLima")
    ('Peru: Lima.', 'Lima')
    >>> split_thinking("Peru: Lima.</think>Lima")
    ('Peru: Lima.', 'Lima')
    >>> split_thinking("<think>Peru")
    ('Peru', '')
    >>> split_thinking("Write <think>..</think> around it.")
    (None, 'Write <think>..</think> around it.')
    """
    if BEGIN not in text and END not in text:
        return None, text
    opened = text.lstrip().startswith(BEGIN)
    if not opened and not (END in text and BEGIN not in text.partition(END)[0]):
        return None, text
    thought, _, rest = text.partition(END)
    return thought.replace(BEGIN, "", 1).strip(), rest.lstrip()


def tokens_of_answer(logprobs: TokenLogprobs) -> TokenLogprobs | None:
    """Return the tokens behind the closing mark; None where a token lies across it."""
    joined = ""
    for place, token in enumerate(logprobs.tokens):
        before, joined = joined, joined + token
        if END in joined:
            if joined.partition(END)[2].strip() or END in before:
                return None
            return logprobs.after(place + 1)
    return logprobs.after(len(logprobs.tokens))


def kept_thinking(*given: Any) -> str | None:
    """Return the first text among what an endpoint calls thinking, as far as it is kept.

    Examples
    --------
    >>> kept_thinking(None, "", "Peru: Lima.")
    'Peru: Lima.'
    """
    found = next((one for one in given if isinstance(one, str) and one), None)
    return None if found is None else bounded_text(found, MOST_THINKING)
