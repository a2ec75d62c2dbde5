"""What a policy is to reach, and the policy that was chosen for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from calibrant.core.estimate import Estimate
from calibrant.epistemic.deferral.mixing import Mix
from calibrant.epistemic.deferral.policy import Inner


@dataclass(frozen=True, slots=True)
class Target:
    """What the policy is to reach.

    Parameters
    ----------
    budget
        Mean cost per question, as a share of what the largest model costs.
    accuracy
        Accuracy to reach at the lowest cost; None with no budget: that of the largest model.
    margin
        With a guarantee: how much less accurate than the largest model is tolerated.
    delta
        Chance that the guarantee fails.
    strategy
        The strategy to save, whatever the others reach; None: the best one.
    """

    budget: float | None = None
    accuracy: float | None = None
    margin: float | None = None
    delta: float = 0.1
    strategy: str | None = None


@dataclass(frozen=True, slots=True)
class ChosenPolicy:
    """The policy chosen and why.

    Parameters
    ----------
    strategy
        Its name; ``"single"`` is always one model.
    policy, dials, share
        The fitted policy, the two settings of its dial, and the share of questions that meet the
        second.
    mix
        Positions of the settings, cost and accuracy.
    accuracy, cost, gain
        Of the mix, on questions that its policies had not seen; gain is that over the largest
        model, question by question.
    reasons
        Per strategy, why it was not taken.
    certified
        With a guarantee: how many settings passed, None without.
    how
        What was reached, in words.
    """

    strategy: str
    policy: Inner
    dials: tuple[Any, Any]
    share: float
    mix: Mix
    accuracy: Estimate
    cost: Estimate
    gain: Estimate
    reasons: dict[str, str] = field(default_factory=dict)
    certified: int | None = None
    how: str = ""
