"""Options that the commands of label share, and the document that is made of them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np
from msgspec.structs import asdict

from calibrant.core import shared_options as opt
from calibrant.core.document import plain
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.verb import INPUT, Option, declaration, verb
from calibrant.data.sources.input import document_head
from calibrant.data.sources.options import ReadingOptions, table_settings
from calibrant.findings.claims.dependence import (
    dependence_entry,
    dependence_notes,
    pool_sentence,
)
from calibrant.findings.claims.labels import label_claims
from calibrant.findings.documents.fields import typed
from calibrant.labels.labelling.designs import DEFAULT_DESIGN
from calibrant.labels.labelling.estimates import pool_estimate
from calibrant.labels.labelling.labellers import LabelNoise, judged_pool
from calibrant.labels.labelling.pools import LabelPool, share_left
from calibrant.labels.labelling.power import labels_for_claim
from calibrant.labels.labelling.session import LabelledBlock, people_of
from calibrant.labels.labelling.stopping import Goals, labels_for_precision, stop_decision
from calibrant.labels.pool import OpenPool, open_pool, states_confidence

# What most people who name no goal can use, for 130 to 350 labels.
DEFAULT_PRECISION = 0.05

Who = Annotated[str, Option("Name of the person who labels.", metavar="NAME")]
CheckGrades = Annotated[bool, Option("Check the grades that this program made of a study.")]


class StoreOptions(opt.TableOptions, total=False):
    """Options of every command of `label`: where labels are kept, how the table is read."""

    existing: str
    labels: str | Path | None


class PoolOptions(StoreOptions, total=False):
    """Options of every command that estimates: side information and bins."""

    judge: str | None
    peers: bool
    bins: int


class DrawOptions(PoolOptions, total=False):
    """Options of commands that draw items."""

    design: str
    overlap: float
    whole_questions: bool
    seed: int


class GoalOptions(PoolOptions, total=False):
    """Options of commands that say whether one may stop."""

    precision: float | None
    threshold: float | None
    budget: int | None


class ServeOptions(DrawOptions, GoalOptions, total=False):
    """Options of the page: it draws, and says whether one may stop."""


@verb(shared=opt.TABLE)
def _labelling(
    *,
    existing: Annotated[str, Option(group=INPUT, choices=("ignore", "random"))] = "ignore",
    labels: Annotated[str | Path | None, opt.advanced(metavar="PATH")] = None,
    judge: Annotated[str | None, opt.column()] = None,
    peers: Annotated[bool, Option()] = False,
    bins: Annotated[int, opt.number("", 1, 1000)] = 15,
    design: Annotated[
        str,
        Option(metavar="stratified|random|pps", choices=("stratified", "random", "pps", "neyman")),
    ] = DEFAULT_DESIGN,
    overlap: Annotated[float, Option(metavar="SHARE", min=0, max=1)] = 0.1,
    whole_questions: Annotated[bool, Option()] = False,
    seed: opt.Seed = 0,
    precision: Annotated[float | None, opt.share(metavar="D")] = None,
    threshold: Annotated[float | None, opt.share(metavar="X")] = None,
    budget: Annotated[int | None, opt.number("", 50, 10**9)] = None,
    **table: Unpack[opt.TableOptions],
) -> None:
    """Declare how a pool is labelled; commands of `label` have some of these options.

    Parameters
    ----------
    existing
        Outcomes in the table itself: leave them out, or take them as a random choice.
    labels
        Where labels are kept; beside the table by default.
    judge
        A cheap judge's verdicts, as side information.
    peers
        Use the agreement of other models' answers.
    bins
        Slices of confidences that few rows state, at most.
    design
        How items are drawn.
    overlap
        Share of items that two people label.
    whole_questions
        Draw questions with all their answers, so that models can be compared.
    precision
        Stop when accuracy and error are known to within this; 0.05 where no goal is named.
    threshold
        Stop when the error is above or below this.
    budget
        The most labels you will make, if fixed beforehand.
    """


LABELLING = declaration(_labelling)


def goals_of(options: Mapping[str, Any]) -> Goals:
    """Return the goal of labelling by name: a precision of 5 points where none is named.

    Examples
    --------
    >>> goals_of({"budget": 400})["precision"], goals_of({"threshold": 0.1})["precision"]
    (0.05, None)
    """
    precision, threshold, budget = map(options.get, ("precision", "threshold", "budget"))
    if precision is None and threshold is None:
        precision = DEFAULT_PRECISION
    return {"precision": precision, "threshold": threshold, "budget": budget}


class OpenTask(NamedTuple):
    """A pool that a command works on, the head of its document, its columns and its goal."""

    work: OpenPool
    head: dict[str, Any]
    columns: dict[str, Any]
    goals: Goals

    def document(self) -> dict[str, Any]:
        """Return the state of the pool, as a document."""
        work, goals = self.work, self.goals
        session = work.session
        states = session.states()
        people = people_of(states)
        blocks = session.blocks(states)
        # Which labelled rows hang together: of the table itself everything holds all the same.
        dependence = [dependence_entry(work.dependence(block)) for block in blocks]
        notes = [pool_sentence(groups) for entry in dependence for groups in entry.groups]
        notes = list(dict.fromkeys(notes)) or dependence_notes(dependence)
        results = [_entry(block, work, goals) for block in blocks]
        for entry in results:
            if people.label_error is not None and entry["labelled"]:
                noise = LabelNoise(people.label_error, people.pairs)
                entry["accuracy_without_label_noise"] = noise.corrected(entry["accuracy"])
        settings = {"bins": session.bins, **goals, "judge": work.judge, "peers": work.peers}
        document = {
            **self.head,
            "settings": {**settings, **table_settings(self.columns)},
            "reading": work.reading.to_dict(),
            "data": {"warnings": [], "notes": notes},
            "claims": [],
            "results": results,
            "people": people,
            "store": str(session.store.path),
            "waves": [
                {name: value for name, value in asdict(wave).items() if name != "seed"}
                for wave in session.store.waves()
            ],
            "labels_in_file": work.in_file,
            "batch": None,
            "added": None,
            "dropped": work.dropped,
            "target": "the value that labelling the whole table would give",
        }
        entries = typed(plain(document)).results
        claims = label_claims(entries, precision=goals["precision"], threshold=goals["threshold"])
        return {**document, "claims": [claim.to_dict() for claim in claims]}


def open_task(
    table: Any, options: Mapping[str, Any], *, wave: int = 50, create: bool = True
) -> OpenTask:
    """Open the pool of a command by its options.

    Parameters
    ----------
    table
        The pool.
    options
        Options of the command, those of its `Options` and no others.
    wave
        Items drawn at a time.
    create
        Whether to make a store where there is none.
    """
    head = document_head("label", table, seed=options.get("seed"))
    columns = {name: options[name] for name in opt.TABLE.parameters}
    peers = {*columns, "precision", "threshold", "budget"}
    remainder = {
        name: options[name] for name in LABELLING.parameters.keys() & options.keys() - peers
    }
    if remainder.get("judge") and not columns["confidence"] and not states_confidence(table):
        # A judge's score is what there is: items are spread along it.
        columns["confidence"], remainder["judge"] = remainder["judge"], None
    work = open_pool(table, asked=ReadingOptions(**columns), wave=wave, create=create, **remainder)
    return OpenTask(work, head, columns, goals_of(options))


def refuse_overwriting(table: Any, out: str | Path | None) -> None:
    """Refuse to write the user's own table."""
    if out is None or not isinstance(table, str | Path):
        return
    if Path(out).resolve() == Path(table).resolve():
        raise InputError(
            "the table itself is never written: its labels are kept beside it",
            source=str(out),
            hint=Hint("name another file with {out}, or leave it out"),
        )


_HISTORY = 20
# Labels from which on the share that side information explains is worth telling.
_ENOUGH = 40


def _entry(block: LabelledBlock, work: OpenPool, goals: Goals) -> dict[str, Any]:
    pool = block.pool
    entry: dict[str, Any] = {
        **block.keys,
        "n": int(pool.confidence.size),
        "labelled": int(pool.labelled.sum()),
        "bins": pool.bins,
        "mean_confidence": float(pool.confidence.mean()),
    }
    if not entry["labelled"]:
        return entry
    stats = pool_estimate(pool)
    population = pool_estimate(pool, target="population").to_dict()
    helped = pool.side is not None and entry["labelled"] >= _ENOUGH
    entry |= {
        **stats.to_dict(),
        "population": {"target": "population", **population},
        "claimed_accuracy": pool_estimate(pool, level=0.97).accuracy,
        "unseen": stats.unseen,
        "gaps": [
            {
                "bin": ends,
                "share": float(stats.bins.weight[k]),
                "labels": int(stats.bins.labels[k]),
                "gap": float(stats.bins.gap[k]) if stats.bins.labels[k] else None,
                "standard_error": float(stats.bins.error[k]) if stats.bins.labels[k] else None,
            }
            for k, ends in enumerate(pool.cell_ends())
        ],
        "stop": stop_decision(pool, estimate=stats, **goals),
        "history": list(_history(pool)),
        # The share of labels still needed with side information, as the data support it.
        "side_leaves": share_left(pool) if helped else None,
    }
    entry["more_labels"] = _more(pool, goals["threshold"])
    entry["more_for_precision"] = None
    if goals["precision"] is not None:
        finished, half = entry["labelled"], entry["stop"]["half_width"]
        targets = labels_for_precision(finished, entry["n"], half, goals["precision"])
        entry["more_for_precision"] = targets - finished
    if work.judge is not None:
        entry["judge"] = judged_pool(pool)
    return entry


def _more(pool: LabelPool, threshold: float | None) -> int | None:
    """Return how many more labels would decide the threshold, if the model is calibrated."""
    if threshold is None:
        return None
    plan = labels_for_claim(pool.confidence, threshold, bins=pool.bins)
    total = pool.confidence.size if plan.all_looks is None else plan.all_looks
    return max(0, total - int(pool.labelled.sum()))


def _history(pool: LabelPool) -> Iterator[dict[str, object]]:
    """Yield the running estimate at up to 20 moments, the data of the figure."""
    draws = pool.draws
    lab = np.flatnonzero(pool.labelled)
    if draws is None or draws.order is None or lab.size < 2:
        return
    ranking = lab[np.argsort(draws.order[lab], kind="stable")]
    steps = np.unique(np.linspace(min(10, lab.size), lab.size, min(_HISTORY, lab.size)).astype(int))
    for number, step in enumerate(steps, start=1):
        outcomes = np.full(pool.correct.size, np.nan)
        outcomes[ranking[:step]] = pool.correct[ranking[:step]]
        sample = np.bincount(draws.wave[ranking[:step]], minlength=len(draws.waves) + 1)[1:]
        # Other blocks' labels do not show here; only the shares of the waves matter.
        part = replace(draws, labelled=tuple(sample.tolist()), along=None)
        running = pool_estimate(replace(pool, correct=outcomes, draws=part, stratum=None))
        yield {"batch": number, "labels": int(step), "ece": running.ece}
