"""`methods`: which confidence methods there are, and which a study can use."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

from calibrant.answers.confidence import NEEDS, availability, compact_table
from calibrant.answers.confidence import methods as declared_methods
from calibrant.core.errors import InputError, did_you_mean
from calibrant.core.hints import Call, Hint
from calibrant.core.shared_options import source
from calibrant.core.verb import Option, verb
from calibrant.data import Study
from calibrant.data.formats import is_study
from calibrant.data.sources.input import document_head
from calibrant.report.result import MethodsResult


@verb(example="calibrant methods study")
def methods(
    study: Annotated[str | Path | None, source(metavar="[STUDY]", argument=True)] = None,
    *,
    needs: Annotated[str | None, Option(metavar="WORD")] = None,
) -> MethodsResult:
    """List the confidence methods, and say which are available for a study.

    Parameters
    ----------
    study
        Say which methods this study can use, and why it cannot use the others.

        None lists the methods alone.
    needs
        Only methods that need this: logprobs, samples, judge, one-call, or an input's name.

        ``logprobs``: methods that read probabilities of tokens; ``samples``: that need repeated
        answers; ``judge``: that ask for verdicts; ``one-call``: that need one answer alone; or
        the name of an input.

    Returns
    -------
    MethodsResult
        Document ``calibrant.methods/1``: ``methods`` (name, summary, needs, about, probability,
        low, high, direction, reference), ``needs`` (what each input is), and for a study
        ``results``: one entry per model and method with available, questions, missing, reason.

    Examples
    --------
    >>> entry = methods()["methods"][0]
    >>> entry["name"], entry["probability"]
    ('consistency', True)
    """
    document = {
        **document_head("methods", study),
        "study": None if study is None else str(study),
        "methods": [entry for entry in declared_methods() if _wanted(entry, needs)],
        "needs": {name: need.meaning for name, need in NEEDS.items()},
        "results": [] if study is None else _availability(Path(study)),
    }
    return MethodsResult(document)


_NO_STUDY = "run `{call}` first, or leave the folder away to list all methods"
_GROUPS: dict[str, Callable[[Collection[str]], bool]] = {
    "logprobs": lambda names: any("logprobs" in name or "alternatives" in name for name in names),
    "samples": lambda names: any("samples" in name for name in names),
    "judge": lambda names: any(
        name.startswith(("p_true", "panel", "verified", "selfcheck")) for name in names
    ),
    "one-call": lambda names: all(name.startswith(("greedy", "option", "yes_no", "verb"))
                                  and "samples" not in name for name in names),
}  # fmt: skip


def _wanted(entry: Mapping[str, Any], word: str | None) -> bool:
    """Return whether a method has the need asked for."""
    if word is None:
        return True
    if word in _GROUPS:
        return _GROUPS[word](entry["needs"])
    if word not in NEEDS:
        raise InputError(f"no method needs {word!r}", hint=did_you_mean(word, [*_GROUPS, *NEEDS]))
    return word in entry["needs"]


def _availability(path: Path) -> list[dict[str, Any]]:
    if not is_study(path):
        rule = "not a study folder (one that holds study.toml or tables/)"
        raise InputError(rule, source=str(path), hint=Hint(_NO_STUDY, call=Call("run", "STUDY")))
    study = Study(path)
    if not study.has("draws"):
        raise InputError(
            "the study has no draws yet, so no method can be used",
            source=str(path),
            hint=Hint("collect them with `{call}`", call=Call("run", path)),
        )
    companion = [study.read(n) if study.has(n) else None for n in ("semantics", "questions")]
    return availability(compact_table(study.read("draws"), *companion))
