"""Every kind of simulated world still runs: a rate on docs/claims.md can be measured again."""

import importlib
import pkgutil

import numpy as np
import pytest
from simulations import claims

from calibrant.findings.claims import checks, declared

checks.load()
NAMES = {rule.id for rule in declared()}
PARTS = [part.name for part in pkgutil.iter_modules(claims.__path__)]


def _kinds(part):
    """Return the first world of each function that runs one."""
    worlds = getattr(importlib.import_module(f"simulations.claims.{part}"), "worlds", tuple)()
    kinds = {}
    for world in worlds:
        kinds.setdefault(getattr(world.run, "func", world.run).__qualname__, world)
    return kinds.values()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", PARTS)
def test_one_world_of_each_kind_says_claims_that_are_declared(part):
    for world in _kinds(part):
        single = [] if world.alone is None else [world.alone[1](np.random.default_rng(0))]
        for said in [*world.run(np.random.default_rng(0)), *single]:
            assert said.id in NAMES, world.name
