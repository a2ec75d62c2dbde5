"""Which columns of a table play which role: named, recognised by their name, or missing."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.registry import did_you_mean
from calibrant.records.columns import guessed_column

LISTS = ("confidence", "question_id")
# A weight may be that of a parcel: it changes every number, so somebody has to say that it is one.
NEVER_GUESSED = ("weights",)
ROLES = ("confidence", "correct", "question_id", "model", "method", "answer", "weights")


def require_column(column: str, names: Sequence[str], source: str | None, *, role: str) -> str:
    """Return the column, or say which are near where it is not there."""
    if column not in names:
        raise InputError(
            f"there is no column {column!r} for {role}",
            source=source,
            hint=did_you_mean(column, list(names)),
        )
    return column


def resolve_roles(
    names: list[str], source: str | None, **asked: str | None
) -> dict[str, list[str]]:
    """Map each role to its columns; only confidence and correct must exist."""
    roles: dict[str, list[str]] = {}
    for role in ROLES:
        wanted = asked[role]
        if wanted is None:
            own = role if role in names else None
            if own is None and role not in NEVER_GUESSED:
                own = guessed_column(role, names)
            if own is None and role in ("confidence", "correct"):
                raise InputError(
                    f"there is no column {role!r}",
                    source=source,
                    hint=_which(role, names),
                )
            roles[role] = [] if own is None else [own]
        elif wanted in names or "," not in wanted:
            roles[role] = [require_column(wanted, names, source, role=role)]
        else:
            roles[role] = _several(role, wanted, names, source)
    return roles


def _which(role: str, names: list[str]) -> Hint:
    """Name the columns whose names contain the role; else those with a name that is near."""
    alike = [name for name in names if role in name.lower()]
    if not alike or role not in LISTS:
        return Hint("name it with {" + role + "}; {0}", did_you_mean(role, names))
    if len(alike) == 1:
        return Hint("name it with {" + role + "}: {0}", alike[0])
    text = "name one of these with {" + role + "}, or all of them: {0}"
    return Hint(text, ",".join(alike))


def _several(role: str, wanted: str, names: list[str], source: str | None) -> list[str]:
    """Return the columns of a list; only a question and a confidence may have several."""
    found = [require_column(part.strip(), names, source, role=role) for part in wanted.split(",")]
    if role not in LISTS:
        raise InputError(
            f"{role} is one column, got {len(found)}: {wanted}",
            source=source,
            hint=f"only {' and '.join(LISTS)} may be lists",
        )
    if len(set(found)) < len(found):
        raise InputError(f"a column is named twice for {role}: {wanted}", source=source)
    return found
