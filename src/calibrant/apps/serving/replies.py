"""What a policy promises, and what a caller is told of one question."""

import datetime as dt
from collections.abc import Mapping

from msgspec import Struct

UNPROMISED = "none for this answer"
UNRECORDED = "none: it could not be recorded"


class Served(Struct, frozen=True):
    """A policy as it is served: its name, its method, what it promises and how long.

    `labelled_as` is the name of the method among its labels. After `expires` nothing is promised
    any more.
    """

    id: str
    method: str
    promise: str
    labelled_as: str = "confidence"
    ends_when: str | None = None
    expires: dt.date | None = None

    @property
    def days_left(self) -> int | None:
        """Days for which the promise holds; None where it names no end."""
        if self.expires is None:
            return None
        return max(0, (self.expires - dt.datetime.now(dt.UTC).date()).days)


class ServedReply(Struct, frozen=True, kw_only=True):
    """What became of a question: what its caller is told, then what that rests on.

    `decision` is ``answer``, ``defer`` or ``degraded``: a stronger model was wanted and failed, and
    the answer at hand is given without the promise. `why` says how sure the model is; what it would
    have said stands there only where the answer is given.
    """

    id: str
    decision: str
    answered_by: str | None
    asked: tuple[str, ...]
    probability: float | None
    interval: tuple[float, float] | None
    confidence: float | None
    why: str
    risk: float | None
    cost: float
    policy: str
    method: str
    promise: str
    days_left: int | None
    ends_when: str | None
    shift: str | None
    degraded: str | None
    answer: str | None
    model: str | None
    response: Mapping[str, object] | None

    @property
    def said(self) -> dict[str, object]:
        """What a caller is told about an answer, beside the answer."""
        return {name: getattr(self, name) for name in self.__struct_fields__[:-3]}
