"""How the confidence of a policy was asked for, saved with it so that `serve` asks the same way."""

from __future__ import annotations

from typing import Any


def how_asked(data: Any, method: str) -> dict[str, Any]:
    """Return the method with its prompts and draws, or ``not_live``: why it cannot be asked live.

    Parameters
    ----------
    data
        What the verb was given.
    method
        The confidence method of the policy.
    """
    # Loaded only where a policy is saved: deciding on a table needs nothing that asks models.
    from calibrant.collect.recipe import study_recipe
    from calibrant.confidence import METHODS

    known = METHODS[method].needs if method in METHODS else ()
    return study_recipe(data, method, tuple(known))
