"""Models whose columns stand side by side: `GPT confidence`, `GPT right?`, `Claude right?` .."""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_ASIDE = re.compile(r"[(\[{][^)\]}]*[)\]}]")
_EDGES = " \t_-–.,:;/|?!%()[]{}"


def model_of(column: str, words: Collection[str]) -> str:
    """Return the rest of a column's name without the word for its role; empty without either.

    Examples
    --------
    >>> words = {"confidence", "conf", "isright"}
    >>> model_of("GPT-4o confidence", words), model_of("conf_llama_3", words)
    ('GPT-4o', 'llama_3')
    >>> model_of("Is right (Claude)", words), model_of("confidence", words), model_of("Age", words)
    ('Claude', '', '')
    >>> model_of("Model A confidence (%)", words), model_of("Model A: is right [y/n]", words)
    ('Model A', 'Model A')
    """
    pieces = list(_WORD.finditer(column))
    # A role of two words, such as 'is right', is looked for before its second word alone.
    spans = [*pairwise(pieces)]
    spans += [(piece, piece) for piece in pieces]
    for first, last in spans:
        run = first[0] if first is last else first[0] + last[0]
        if run.lower() in words:
            rest = f"{column[: first.start()].strip(_EDGES)} {column[last.end() :]}"
            # What stands in brackets beside a name is a unit, alone it is the name.
            return _ASIDE.sub("", rest).strip(_EDGES) or rest.strip(_EDGES)
    return ""


def models_side_by_side(columns: Sequence[str], words: Collection[str]) -> dict[str, str]:
    """Return the columns that hold a role of one model each, by model without its letters' case.

    None where two would be of one model, or a column is called by its role alone.

    Examples
    --------
    >>> models_side_by_side(["GPT conf", "conf Claude", "id"], {"conf"})
    {'gpt': 'GPT conf', 'claude': 'conf Claude'}
    >>> models_side_by_side(["GPT conf", "gpt_conf"], {"conf"})
    {}
    """
    named = {column: model_of(column, words).lower() for column in columns}
    by_model = {model: column for column, model in named.items() if model}
    return by_model if len(by_model) == sum(map(bool, named.values())) else {}
