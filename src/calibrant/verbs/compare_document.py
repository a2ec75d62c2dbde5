"""The document of a comparison: every method and group, decided together, then its claims."""

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.comparison.compare import Watch, compare_parts
from calibrant.comparison.families import decide_document, document_claims
from calibrant.comparison.pipeline import ComparisonOptions
from calibrant.comparison.source import NOT_A_PROBABILITY, CompareSource, ComparisonKey
from calibrant.core.document import plain
from calibrant.core.errors import InputError
from calibrant.findings.claims.dependence import dependence_entry
from calibrant.report.typed import CompareResult
from calibrant.verbs.dependent_rows import told_dependence


def compare_document(
    source: CompareSource, options: ComparisonOptions, watch: Watch | None = None
) -> CompareResult:
    """Build the document of a comparison from its opened input."""
    compared = compare_parts(
        source.read,
        source.parts,
        [key.models for key in source.comparisons.wholes],
        options=options,
        pools=source.pools,
        each=source.each,
        watch=watch,
    )
    refused = list(source.comparisons.refused)
    parts = []
    for key, part in zip(source.comparisons.wholes, compared, strict=True):
        if isinstance(part, InputError):
            refused.append((key, part))
            continue
        for entry in part["results"]:
            entry["verification"] = source.verification(key, entry["model"])
        for pair in part["pairs"]:
            doubt = source.grading(key, pair["a"], pair["b"])
            pair |= {} if doubt is None else {"grading": doubt}
        parts.append({"keys": key.keys, **part})
    if not parts:
        raise _refusal(refused, source.head["source"])
    rule = decide_document(parts, level=options["level"], margin=options["margin"])
    _reversals_by_group(parts)
    missing = [part["keys"] | plain(row) for part in parts for row in part["missing"]]
    data = {**source.data, "missing": missing}
    matches = [
        (" and ".join(key.models[:2]), dependence_entry(item)) for key, item in source.searches
    ]
    told_dependence({"data": data, "input": source.head.get("input")}, matches)
    # Thousands of pairs are plain data already.
    pairs = [pair for part in parts for pair in part["told"]]
    return CompareResult.of_plain(
        plain(
            {
                **source.head,
                **options,
                "reading": source.reading,
                "data": data,
                "claims": document_claims(parts, level=options["level"]),
                "dropped": dict(source.dropped),
                "emptied_models": list(source.emptied),
                "not_compared": [
                    *({**key.keys, "reason": error.rule} for key, error in refused),
                    *(
                        {**key.keys, "model": model, "reason": reason}
                        for key, model, reason in source.comparisons.taken_out
                    ),
                ],
                "multiplicity": rule,
                "league": [{**part["keys"], **part["league"]} for part in parts],
                "results": _keyed(parts, "results"),
                "pairs": None,
                "summaries": [{name: part[name] for name in _SUMMARY} for part in parts],
                "self_preference": _keyed(parts, "self_preference"),
            }
        )
        | {"pairs": pairs}
    )


_SUMMARY = ("keys", "questions", "questions_shared_by_all", "left_out", "summary")


def _keyed(parts: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    return [{**part["keys"], **entry} for part in parts for entry in part[name]]


def _reversals_by_group(parts: Sequence[dict[str, Any]]) -> None:
    """Put the reversal rates of a method's groups beside those of all its questions."""
    for part in parts:
        method, group = part["keys"].values()
        if group is not None or not part["summary"]["cases"]:
            continue
        part["summary"]["by_group"] = [
            {
                "group": peer["keys"]["group"],
                "cases": peer["summary"]["cases"],
                **peer["summary"]["rates"],
            }
            for peer in parts
            if peer["keys"]["method"] == method
            and peer["keys"]["group"] is not None
            and peer["summary"]["cases"]
        ]


def _refusal(refused: Sequence[tuple[ComparisonKey, InputError]], source: str) -> InputError:
    """Return why nothing could be compared: the first reason, and how many parts there are."""
    # That a score is no probability is known beforehand; another reason says more.
    key, error = next(
        ((key, error) for key, error in refused if error.rule != NOT_A_PROBABILITY), refused[0]
    )
    message = f"{key.place}: {error.rule}"
    if len(refused) > 1:
        message += f" (none of the {len(refused)} methods and groups can be compared)"
    return InputError(message, source=source, hint=error.hint)
