"""Do plans keep their word? The chance that was planned for, measured with other random numbers."""

from __future__ import annotations

from functools import partial

from calibrant.claims.plan import plan_claims
from calibrant.planning.labelling.power import claim_for_labels, claim_power, labels_for_claim
from simulations.claims.harness import Said, World

RUNS = 100
# A forecast of 80 % is wrong where the claim is shown in fewer than 75 %.
LEAST = 0.75


def entry(p, needed, shows):
    return {
        "model": "m", "method": "confidence", "group": None, "items": p.size,
        "needed": needed, "shows": shows,
    }  # fmt: skip


def kept(rng, *, shape, threshold):
    p = rng.beta(*shape, 3000)
    first = labels_for_claim(p, threshold)
    half = labels_for_claim(p, threshold, true_error=threshold / 2)
    needed = {
        "threshold": threshold,
        "power": 0.8,
        "calibrated": first.to_dict(),
        "half": half.to_dict(),
    }
    (claim,) = plan_claims([entry(p, needed, None)])
    other = int(rng.integers(1, 10**6))
    power = [claim_power(p, first.one_look, threshold, seed=other)["one_look"]]
    if half.one_look is not None:
        again = claim_power(p, half.one_look, threshold, true_error=threshold / 2, seed=other)
        power.append(again["one_look"])
    yield Said(claim.id, True, min(power) < LEAST)
    reach = claim_for_labels(p, 300)
    shows = {"labels": 300, "power": 0.8, "calibrated": reach, "half": None, "chance": None}
    (claim,) = plan_claims([entry(p, None, shows)])
    yield Said(claim.id, True, claim_power(p, 300, reach, seed=other)["one_look"] < LEAST)


def worlds():
    both = ("plan.labels_needed", "plan.labels_show")
    for name, shape in (("confidences near 1", (8, 1)), ("confidences spread out", (3, 2))):
        yield World(f"{name}, threshold 8 points", partial(kept, shape=shape, threshold=0.08),
                    both, RUNS)  # fmt: skip
