"""What is known against a promise: in memory for every caller, and on disk for the next start."""

import datetime as dt
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct, field

from calibrant.core.append_only import locked_beside, replace_file
from calibrant.core.errors import SchemaError

SCHEMA = "calibrant.serve_state/1"
LEARNED = 200
"""Answers of an endpoint in which the versions behind its name are learned."""


class Seen(Struct):
    """Who answered under a model's name, and how often it was looked at."""

    model: str | None = None
    fingerprints: list[str] = []
    answers: int = 0


class Known(Struct):
    """What is known of one policy; it is kept until another policy is served.

    `expired` is why labels show the promise broken, `changed` what answers in place of the model
    that was certified, `shift` what is unlike the labelled questions, `labels` how many answers
    are labelled.
    """

    expired: str | None = None
    changed: str | None = None
    shift: str | None = None
    labels: int = 0
    seen: dict[str, Seen] = field(default_factory=dict)


class _State(Struct):
    schema: str = SCHEMA
    policies: dict[str, Known] = field(default_factory=dict)


class PromiseState:
    """How a policy stands, and where that is written down.

    Several processes may share the file: what one finds, all tell at their next look.

    Parameters
    ----------
    path
        The file.
    policy
        Short name of the policy.
    """

    def __init__(self, path: Path, policy: str) -> None:
        self.path, self.policy = path, policy
        self.known = self._read().policies.get(policy, Known())
        self.not_verified: Callable[[], str | None] = lambda: None
        """Says since when nobody has looked, where that is too long ago."""
        self._one_at_a_time = threading.Lock()

    def _read(self) -> _State:
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return _State()
        try:
            state = msgspec.json.decode(raw, type=_State)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise SchemaError(
                f"the state of the watch cannot be read: {error}",
                source=str(self.path),
                hint="move the file away; what it knew against the promise is then found anew "
                "from the labels",
            ) from None
        if state.schema != SCHEMA:
            rule = f"this version reads states of {SCHEMA}, got {state.schema!r}"
            raise SchemaError(rule, source=str(self.path), hint="move the file away")
        return state

    def share(self) -> None:
        """Write down what is new, and take over what another process has found."""
        with self._one_at_a_time, locked_beside(self.path):
            self._merge(self._read())

    def _merge(self, state: _State) -> None:
        peer = state.policies.get(self.policy, Known())
        knowledge = self.known
        knowledge.expired = knowledge.expired or peer.expired
        knowledge.changed = knowledge.changed or peer.changed
        knowledge.labels = max(knowledge.labels, peer.labels)
        for name, observed in peer.seen.items():
            mine = knowledge.seen.setdefault(name, msgspec.structs.replace(observed))
            mine.model = observed.model or mine.model
            mine.fingerprints = list(dict.fromkeys([*observed.fingerprints, *mine.fingerprints]))
            mine.answers = max(observed.answers, mine.answers)
        if self.policy not in state.policies or knowledge != peer:
            state.policies[self.policy] = knowledge
            replace_file(self.path, msgspec.json.encode(state) + b"\n")

    def see(self, name: str, model: str | None, fingerprint: str | None) -> None:
        """Look who answers under a model's name: another one than before ends the promise."""
        observed = self.known.seen.setdefault(name, Seen())
        observed.answers = min(observed.answers + 1, LEARNED + 1)
        if model is not None:
            observed.model = observed.model or model
            if model != observed.model:
                self._change(f"{name} is answered by {model}, at first it was {observed.model}")
        if fingerprint is None or fingerprint in observed.fingerprints:
            return
        if observed.answers <= LEARNED:
            observed.fingerprints.append(fingerprint)
        else:
            self._change(f"{name} is answered by another version ({fingerprint})")

    def _change(self, what: str) -> None:
        today = dt.datetime.now(dt.UTC).date().isoformat()
        self.known.changed = self.known.changed or f"since {today} {what}"

    @property
    def shift(self) -> str | None:
        """What is not as it was certified, for callers."""
        return " ".join(filter(None, (self.known.changed, self.known.shift))) or None

    @property
    def against(self) -> str | None:
        """Why nothing is promised at the moment; None where nothing is against it."""
        knowledge = self.known
        return knowledge.expired or knowledge.changed or self.not_verified() or knowledge.shift
