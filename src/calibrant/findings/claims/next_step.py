"""What comes next, by kind of document: one call with the reader's own data, and why."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from calibrant.core.document import given_places, kind_of
from calibrant.core.hints import TABLE, Call, declared_options
from calibrant.findings.claims import Claim
from calibrant.findings.claims.labels import traffic_step
from calibrant.findings.documents.audits import AuditBlock

Document = Mapping[str, Any]

_LATEST, _MEANS = "Audit the latest rows", "What does a stated confidence mean here?"
_ON_A_PAGE = ("audit", {"html": "audit.html"}, "See all of it on a page")
_ONLY = ("only_model", "only_method")
_ALONE, _TRUST = "Choose when it may answer alone", "See how far the confidence can be trusted"
_HOW_MANY, _CLAIM = "How many labels would decide it?", {"claim": "ece<0.05"}
# A limit this many times the one asked for, or of half the answers, is no help: labels are.
_FAR, _HALF = 2.0, 0.5
_LIMIT_STEP, _FEWEST_SEEN = 0.05, 40
# What a cascade may be asked to reach.
_TARGETS = ("budget", "accuracy", "guarantee")
# Verbs that find a column of weights by its name.
_FINDS_WEIGHTS = frozenset({"audit", "plan"})


class Advice(NamedTuple):
    """What to do next: why, and what to type."""

    why: str
    command: str


def next_step(document: Document, beside: Sequence[Document] = ()) -> Advice | None:
    """Return the next step: the document's own where it names one.

    Parameters
    ----------
    document
        What was found.
    beside
        Documents that the reader has already: no step leads to one of them.

    Examples
    --------
    >>> next_step({"schema": "calibrant.audit/1", "source": "runs/my scores.csv"}).command
    "calibrant decide 'runs/my scores.csv' --max-error 0.10"
    """
    step = _own_step(document)
    finished = {kind_of(peer): peer for peer in beside}
    matched = None if step is None else re.match(r"calibrant[ .](\w+)", step.command)
    if matched is not None and matched[1] in finished:
        # Comparing or choosing is done: what was chosen is taken from there.
        step = _own_step(finished["decide"]) if "decide" in finished else _choose(document)
    return step


def step_of_audit(
    head: Document,
    claims: Sequence[Claim],
    entries: Sequence[AuditBlock] = (),
    *,
    weighted: bool = False,
    paired: bool = True,
) -> dict[str, str]:
    """Return what to do after an audit, as its document keeps it.

    Parameters
    ----------
    head
        Head of the document: its input and its columns.
    claims
        What was found.
    entries
        Results that it was found in.
    weighted, paired
        Whether rows have unequal weights; whether models answered the same questions.

    Examples
    --------
    >>> step_of_audit({"source": "s.csv", "input": [{"path": "s.csv"}]}, [])["command"]
    "calibrant plan s.csv --claim 'ece<0.05'"
    """
    if (head.get("samples") or {}).get("columns"):
        return step_of_grades(head, None)
    settings = head.get("settings") or {}
    unit = (settings.get("columns") or {}).get("unit")
    verb, goal, why = _after_audit(claims, entries, paired=paired, unit=unit)
    if not _can_read(settings, verb):
        verb, goal, why = _ON_A_PAGE
    names = bool((settings.get("columns") or {}).get("weights"))
    # A verb that cannot be told their column may still find one that is called so.
    missing = names or (weighted and verb not in _FINDS_WEIGHTS)
    if missing and "weights" not in declared_options(verb):
        why += f" (`{verb}` has no weights: every row counts once)"
    return {"command": _following(head, verb, **goal).text(), "why": why}


def step_of_grades(head: Document, out: Any) -> dict[str, str]:
    """Return what to do with graded answers: audit the study, or write one first.

    Examples
    --------
    >>> samples = {"columns": {}, "references_file": "gold.csv"}
    >>> head = {"source": "s.csv", "input": [{"path": "s.csv"}], "samples": samples}
    >>> step_of_grades(head, None)["command"]
    'calibrant grade s.csv --references gold.csv --out study'
    """
    if out is not None:
        return {"command": Call("audit", out).text(), "why": _TRUST}
    samples = head["samples"]
    # Samples or references are named in any case: they say that answers are to be graded.
    guessed = {*samples.get("guessed", ())} - {"samples", "reference"}
    names = {
        role: samples["columns"][role]
        for role in ("samples", "reference", "correct", "question", "model")
        if role in samples["columns"] and role not in guessed
    }
    companion = samples.get("references_file") or None
    call = Call("grade", *_places(head), **names, references=companion, out="study")
    return {"command": call.text(), "why": "Keep the grades: decide, compare and groups read them"}


def _after_audit(
    claims: Sequence[Claim], entries: Sequence[AuditBlock], *, paired: bool, unit: str | None
) -> tuple[str, dict[str, Any], str]:
    """Return the next verb, its own options and the reason; no step that cannot succeed."""
    if not any(claim.outcome == "shown" for claim in claims):
        return "plan", _CLAIM, _HOW_MANY
    models = {claim.subject.get("model") for claim in claims if claim.subject.get("model")}
    # Below 20 shared questions `compare` gives no interval.
    if len(models) > 1 and paired and min(entry.questions for entry in entries) >= 20:
        return "compare", {}, "Is one model better calibrated, or only more accurate?"
    if unit is not None:
        return "decide", {"max_error": "0.10"}, f"Which {unit} may pass as a whole?"
    repeated = any(entry.questions < entry.n for entry in entries)
    if not repeated and all(map(_may_answer, entries)):
        return "decide", {"max_error": "0.10"}, "Where may it answer alone?"
    if repeated or any((c.id, c.outcome) == ("audit.miscalibrated", "shown") for c in claims):
        return "mend", {}, _MEANS
    return _ON_A_PAGE


def _may_answer(entry: AuditBlock) -> bool:
    """Return whether at most one in ten of 20 answers or more is wrong above some threshold."""
    curve = entry.thresholds
    answers = zip(curve.n, curve.wrong, strict=True) if curve else ()
    return any(n >= 20 and wrong <= n / 10 for n, wrong in answers)


def _places(document: Document) -> list[str]:
    return given_places(document) or [TABLE]


def _following(document: Document, verb: str, *more: str, **settings: Any) -> Call:
    """Return a verb on the same data, told how they were read as far as it can be told."""
    setting = document.get("settings") or {}
    columns = {role: str(name) for role, name in (setting.get("columns") or {}).items() if name}
    # What had to be dropped here would stop the next verb too.
    dropped = {"on_invalid": "drop"} if setting.get("on_invalid") == "drop" else {}
    mended = {"mend": setting["mend"]} if setting.get("mend") else {}
    read, options = {**columns, **dropped, **mended, **_ways(setting)}, declared_options(verb)
    read = {name: value for name, value in read.items() if name in options}
    return Call(verb, *_places(document), *more, **{**read, **settings})


def _can_read(settings: Document, verb: str) -> bool:
    """Return whether a verb can read the table as it was read here."""
    return _ways(settings).keys() <= declared_options(verb).keys()


def _ways(settings: Document) -> dict[str, Any]:
    """Return how a table was read, other than by default; a study or a log has its own rules."""
    if settings.get("whole_record"):
        return {}
    modes = {name: settings.get(name) or None for name in ("graded", "repeats", "scale", "right")}
    modes["recalibrate"] = settings.get("recalibrate") if settings.get("raw_scores") else None
    return {name: value for name, value in modes.items() if value is not None}


def _again(settings: Document, verb: str, *names: str) -> dict[str, Any]:
    """Return recorded settings that are not what the verb takes by itself."""
    options = declared_options(verb)
    return {
        name: settings[name]
        for name in names
        if settings.get(name) and settings[name] != options[name].default
    }


def _own_step(document: Document) -> Advice | None:
    step, kind = document.get("next"), kind_of(document)
    entries = document.get("results") or ()
    stops = kind == "label" and all((entry.get("stop") or {}).get("stop") for entry in entries)
    if entries and stops:
        words = "Take the labels out, with their weights"
        return _to(words, document, "label export", out="labels.csv")
    if kind == "label" and document.get("batch"):
        batch = str(document["batch"]["path"])
        return _to("Take it back when it is filled in", document, "label add", batch)
    if isinstance(step, Mapping):
        return Advice(str(step["why"]), str(step["command"]))
    if step:
        return Advice("Look closer", str(step[0]))
    if kind in _DECIDED and document.get("results"):
        return _DECIDED[kind](document, document["results"])
    return _STEPS[kind](document) if kind in _STEPS else None


def _to(words: str, document: Document, verb: str, *more: str, **settings: Any) -> Advice:
    return Advice(words, _following(document, verb, *more, **settings).text())


def _choose(document: Document, **chosen: str) -> Advice:
    return _to(_ALONE, document, "decide", max_error="0.10", **chosen)


def _trust(document: Document) -> Advice:
    # A study or a log is read as it is.
    return Advice(_TRUST, Call("audit", *_places(document)).text())


def _send(document: Document) -> Advice:
    # Without a price `run` asks first, and where nobody can answer it sends nothing.
    unpriced = document["plan"]["total"]["cost"] is None
    return Advice("Send them", Call("run", *_places(document), yes=unpriced or None).text())


def _planned(document: Document) -> Advice | None:
    if not document.get("source") or (document.get("theory") or {}).get("meanings"):
        # A plan by formula, or of questions, is about no answers that could be labelled.
        return None
    if any(block["verification"]["labels"] for block in document.get("measured") or ()):
        return _to("See what the labels at hand show already", document, "audit")
    return _to("Choose which answers to label first", document, "label next", out="batch.csv")


def _labelled(document: Document) -> Advice:
    # A batch that was given out may still be open: the next one has a name of its own.
    given_out = len(document.get("waves") or ())
    batch = f"batch{given_out + 1}.csv" if given_out else "batch.csv"
    return _to("Label the next batch", document, "label next", out=batch)


_STEPS: dict[str, Callable[[Document], Advice | None]] = {
    "audit": _choose,
    "groups": _choose,
    "leaderboard": lambda seen: _to("Does the order hold at equal accuracy?", seen, "compare"),
    "multi_answer": lambda seen: _to("See which confidence is calibrated", seen, "audit"),
    "plan": _planned,
    "label": _labelled,
    "monitor": lambda document: Advice(
        *(traffic_step(document) or (_LATEST, _following(document, "audit").text()))
    ),
    "methods": lambda _: Advice("Ask a model and compute them", Call("run", "STUDY").text()),
    **dict.fromkeys(("semantics", "grade", "study", "import_logs"), _trust),
    "run": lambda document: (_send if document["dry_run"] else _trust)(document),
}


def _decided(document: Document, entries: Sequence[Document]) -> Advice:
    settings = document.get("settings") or {}
    choice = _again(settings, "decide", "features", "score", "stop", "drop", "sets")
    limit = settings.get("max_error")
    best = max(entries, key=lambda entry: (bool(entry["certified"]), _answered(entry)))
    missed = limit is not None and not best["certified"]
    if missed:
        best = min(entries, key=lambda entry: _reachable(entry, settings["max_error"]))
    keys = [k for k in ("model", "method") if len({entry[k] for entry in entries}) > 1]
    if not keys and len(document.get("input") or ()) > 1:
        # A study holds several models and methods; the decision is about one of them.
        keys = ["model", "method"]
    values = {} if keys else _again(settings, "decide", *_ONLY)
    choice |= values | {f"only_{key}": best[key] for key in keys}
    if missed:
        return _uncertified(document, best, choice)
    if best.get("path"):
        return _saved(document, best, choice)
    one = len(entries) == 1
    words = "Save this threshold for your program" if one else "Save the policy of one"
    goal = _goal(settings)
    if not one and limit is not None:
        # Chosen among several, it keeps the share of delta that it was certified with.
        goal |= {"delta": f"{best['delta']:.4g}"}
    return _to(words, document, "decide", **choice, **goal, save="policy.json")


def _uncertified(document: Document, entry: Document, choice: Document) -> Advice:
    """Return a limit that can be reached; where it is far off, what labels would do."""
    settings = document.get("settings") or {}
    limit = _reachable(entry, request := settings["max_error"])
    # The claim asks for labels where they would help; see `calibrant.findings.claims.decide`.
    observed = any(point["error"]["n"] >= _FEWEST_SEEN for point in entry.get("curve") or ())
    helped = entry.get("labels_needed") is not None or not observed
    if helped and limit > min(_FAR * request, _HALF) + 1e-9:
        return _to("See how many labels its confidence needs", document, "plan", **_CLAIM)
    if limit > _HALF:
        return _to(_TRUST, document, "audit")
    goal = {"max_error": f"{limit:.2f}", **_again(settings, "decide", "delta")}
    return _to("See what a higher limit allows", document, "decide", **{**choice, **goal})


def _saved(document: Document, entry: Document, choice: Document) -> Advice:
    """Return how a saved promise is watched; a policy by costs alone has none yet."""
    settings = document.get("settings") or {}
    if settings.get("max_error") is not None:
        policy = str(entry["path"])
        return _to("Watch whether the promise still holds", document, "monitor", policy=policy)
    observed = (entry.get("error") or {}).get("high")
    if not _answered(entry) or observed is None or observed >= 1:
        return _to(_TRUST, document, "audit")
    goal = {"max_error": f"{_in_steps(observed):.2f}", **_goal(settings)}
    return _to("Promise an error too", document, "decide", **{**choice, **goal})


def _answered(entry: Document) -> float:
    return float((entry.get("answered") or {}).get("value") or 0.0)


def _goal(settings: Document) -> dict[str, Any]:
    """Return what was asked of a decision: a limit with its certainty, costs."""
    costs = {"costs": settings["costs"]} if settings.get("costs") else {}
    if settings.get("max_error") is None:
        return costs
    return {"max_error": settings["max_error"], **_again(settings, "decide", "delta"), **costs}


def _reachable(entry: Document, limit: float) -> float:
    """Return the next limit, in steps of 5 points, that the labels at hand do not exclude."""
    observed = [point["error"]["high"] for point in entry.get("curve") or () if point["error"]["n"]]
    return _in_steps(max(min(observed, default=limit), limit + 1e-9))


def _in_steps(error: float) -> float:
    return min(math.ceil(error / _LIMIT_STEP - 1e-9) * _LIMIT_STEP, 0.95)


def _cascaded(document: Document, entries: Sequence[Document]) -> Advice:
    settings, policy = document.get("settings") or {}, entries[0].get("policy") or {}
    models = list(settings.get("models") or ())
    if policy.get("path"):
        call = Call("serve", policy["path"], endpoint=[f"{model}=URL" for model in models])
        return Advice("Put it in front of the models", call.text())
    if policy.get("rule", "") is None:
        # Too few questions to choose a policy: one cannot be saved either.
        return _to(_TRUST, document, "audit")
    choice: dict[str, Any] = {"models": models}
    if price := settings.get("price"):
        choice["price"] = [float(price[model]) for model in models]
    choice |= _again(settings, "cascade", "cost", "features", *_ONLY)
    request, words = _again(settings, "cascade", *_TARGETS), "Save this policy for your program"
    if not request:
        request, words = {"budget": 0.5}, "Save the policy for half of the largest model's cost"
    if "guarantee" in request:
        request |= _again(settings, "cascade", "delta")
    return _to(words, document, "cascade", **choice, **request, save="policy.json")


def _compared(document: Document, entries: Sequence[Document]) -> Advice | None:
    """Return where the best of the most accurate may answer alone; costs are not known here."""
    graded = [entry for entry in entries if (entry.get("accuracy") or {}).get("value") is not None]
    methods = list(dict.fromkeys(entry["method"] for entry in graded))
    graded = [e for e in graded if e["method"] in methods[:1] and e.get("group") is None]
    if len(graded) < 2 or not _can_read(document.get("settings") or {}, "decide"):
        return None
    league = next(table for table in document["league"] if table["method"] == methods[0])
    least = max(graded, key=lambda entry: entry["accuracy"]["value"])["accuracy"]["low"] or 0.0
    # Models whose accuracies cannot be told apart are told apart by their confidence.
    near = {e["model"] for e in graded if (e["accuracy"]["high"] or 1.0) >= least}
    best = next(row["model"] for row in league["entries"] if row["model"] in near)
    one = {"only_model": best} | ({"only_method": methods[0]} if len(methods) > 1 else {})
    if any(row["uninformative"] for row in league["entries"] if row["model"] == best):
        # No threshold tells its right answers from the wrong ones.
        return _to(_MEANS, document, "mend", **one)
    return _choose(document, **one)


def _mended(document: Document, entries: Sequence[Document]) -> Advice:
    verdicts = {entry["verdict"] for entry in entries}
    if "mended" in verdicts and not entries[0].get("path"):
        options = _again(document["settings"], "mend", "features", "methods", *_ONLY)
        return _to("Save it for your program", document, "mend", **options, save="mend.json")
    if verdicts == {"too few"}:
        return _to(_HOW_MANY, document, "plan", **_CLAIM)
    if document["data"]["questions"] < max(entry["n"] for entry in entries):
        return _to(_TRUST, document, "audit")
    return _choose(document, **_again(document["settings"], "decide", *_ONLY))


_DECIDED = {"decide": _decided, "cascade": _cascaded, "compare": _compared, "mend": _mended}
