"""The server behind the labelling page: loopback only, one token, nothing from elsewhere.

Whoever labels sees the question, the answer and the reference, and how precise the labels are by
now. The confidence, the model and the running value stay hidden: they would sway the label.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack
from urllib.parse import quote

import msgspec
from aiohttp import web

from calibrant.core.errors import InputError
from calibrant.core.loopback import LOOPBACK, Loopback
from calibrant.data.label_schema import ItemState, StoredItem
from calibrant.findings.claims import count
from calibrant.labels.labelling.estimates import pool_estimate
from calibrant.labels.labelling.session import LabelledBlock, LabelSession
from calibrant.labels.labelling.stopping import Goals, labels_for_precision, stop_decision

if TYPE_CHECKING:
    from calibrant.labels.page.grades import GradeSession

COOKIE = "calibrant_label"
_FILES = {"index.html": "text/html", "page.js": "text/javascript", "page.css": "text/css"}
_SHARED = {"page.js": ("parts.js",), "page.css": ("page.css",)}
_QUESTION = ("text", "question", "prompt", "question_text")
_REFERENCE = ("references", "reference", "right_answer", "target")
_MOST_BODY = 64 * 1024
# Labels from which on it is told how precise they are.
_FEWEST_TOLD = 10
# The largest number that the store can look up.
_MOST_ITEM = 2**63 - 1
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}


class _Act(msgspec.Struct):
    """What the page sends."""

    who: str
    item: int | None = None
    label: str | None = None
    note: str | None = None
    store: str | None = None


def shown_item(row: Mapping[str, Any], item: StoredItem) -> dict[str, Any]:
    """Return what a labeller may see of an item.

    Examples
    --------
    >>> from calibrant.data.label_schema import ItemKey
    >>> item = StoredItem(1, ItemKey("0012", "3.50"), 1, 0.1, False)
    >>> shown_item({"text": "How much?", "confidence": 0.9, "model": "m"}, item)
    {'id': 1, 'question': 'How much?', 'answer': '3.50', 'reference': None, 'choices': []}
    """
    question = next((row[name] for name in _QUESTION if row.get(name) is not None), None)
    reference = next((row[name] for name in _REFERENCE if row.get(name) is not None), None)
    choices = row.get("choices")
    return {
        "id": item.id,
        "question": f"Question {item.key.question_id}" if question is None else str(question),
        "answer": item.key.answer or "(the pool holds no text of the answer)",
        "reference": None if reference is None else _listed(reference),
        "choices": [str(choice) for choice in choices] if isinstance(choices, list) else [],
    }


def _listed(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple):
        return str(value)
    return " | ".join(p if isinstance(p, str) else " / ".join(map(str, p)) for p in value)


class Progress(NamedTuple):
    """How precisely the labels show a pool, about how many are wanted, and whether to stop."""

    half: float | None = None
    goal: int | None = None
    stop: bool = False


@dataclass(slots=True)
class LabelServer:
    """Serve a pool to people who label it.

    Parameters
    ----------
    session
        The pool and its labels.
    precise
        Returns what works out how precise the labels are by now (``half``), about how many will do
        (``goal``) and whether one may stop (``stop``), see `widest_block`. Only the first step may
        read the store: the second is done beside other requests.
    budget
        Labels to make, where that is fixed.
    """

    session: LabelSession | GradeSession
    precise: Callable[[list[ItemState]], Callable[[], Progress]] | None = None
    budget: int | None = None
    token: str = field(init=False)
    door: Loopback = field(init=False)
    _precise: tuple[int, Progress] | None = None

    def __post_init__(self) -> None:
        # Kept with the labels: a page that was open when the server died goes on after a restart.
        stored = self.session.store.meta("token")
        self.token = stored or secrets.token_urlsafe(24)
        self.session.store.keep_private()
        if stored is None:
            self.session.store.set_meta("token", self.token)
        self.door = Loopback(
            self.token,
            "calibrant label serve",
            cookie=COOKIE,
            headers=_HEADERS,
            also=self._not_the_page,
            say=_told,
        )

    def app(self) -> web.Application:
        """Return the application with its checks and its routes."""
        app = self.door.app(most_body=_MOST_BODY)
        for path in ("/", "/page.js", "/page.css"):
            app.router.add_get(path, self._page)
        app.router.add_get("/api/next", self._next)
        app.router.add_get("/api/conflict", self._conflict)
        app.router.add_post("/api/label", self._label)
        app.router.add_post("/api/settle", self._settle)
        app.router.add_post("/api/undo", self._undo)
        return app

    async def start(self, port: int = 0) -> str:
        """Listen on loopback and return the address to open, token included."""
        # The port of the last time, so that an open page finds the server again.
        last = int(self.session.store.meta("port") or 0)
        ports = (port,) if port or not last else (last, 0)
        bound = await self.door.listen(self.app(), ports)
        if not last:
            self.session.store.set_meta("port", str(bound))
        # A browser sends the cookies of one port to all others: each page has a name of its own.
        self.door.cookie = f"{COOKIE}_{bound}_{self.store_id}"
        return f"http://{LOOPBACK}:{bound}/?token={self.token}"

    @property
    def store_id(self) -> str:
        """A short name of the store: a page must not send its labels to another one."""
        place = str(self.session.store.path.resolve())
        return hashlib.blake2b(place.encode(), digest_size=6).hexdigest()

    async def stop(self) -> None:
        """Stop listening."""
        await self.door.stop()

    @staticmethod
    def _not_the_page(request: web.Request) -> str | None:
        """Only the labelling page sends this header; a form of another page cannot."""
        if request.path.startswith("/api/") and request.headers.get("X-Labelling") != "1":
            return "This is for the labelling page only."
        return None

    # -- answers --------------------------------------------------------------------------

    async def _page(self, request: web.Request) -> web.StreamResponse:
        name = request.path.lstrip("/") or "index.html"
        if "token" in request.query:
            person = request.query.get("who")
            return self.door.keep_token("/" if person is None else f"/?who={quote(person)}")
        # Loaded here: it brings the templates of pages, and most who draw a batch serve nothing.
        from calibrant.report.page import page_asset

        # Parts and style are those of pages and of the app; what is its own follows.
        text = "".join(map(page_asset, _SHARED.get(name, ())))
        text += resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
        return web.Response(text=text, content_type=_FILES[name], charset="utf-8")

    async def _next(self, request: web.Request) -> web.Response:
        return await self._give(_name(request.query.get("who", "")))

    async def _label(self, request: web.Request) -> web.Response:
        act = await self._act(request)
        self.session.store.label(act.item or 0, act.who, act.label or "", note=act.note)
        return await self._give(act.who)

    async def _undo(self, request: web.Request) -> web.Response:
        act = await self._act(request)
        if self.session.store.undo(act.who) is None:
            raise InputError("You have no label to take back.")
        return await self._give(act.who)

    async def _act(self, request: web.Request) -> _Act:
        if request.content_type != "application/json":
            raise InputError("The page sends JSON.")
        try:
            act = msgspec.json.decode(await request.read(), type=_Act)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"The page sent what cannot be read: {error}") from None
        act.who = _name(act.who)
        if act.store not in (None, self.store_id):
            raise web.HTTPConflict(reason="This label belongs to another pool.")
        if not 0 <= (act.item or 0) <= _MOST_ITEM:
            raise InputError("There is no such item.")
        return act

    async def _give(self, person: str) -> web.Response:
        items = self.session.take(person)
        state = await self._progress()
        visible = shown_item(self.session.row(items[0]), items[0]) if items else None
        reason = "Every item that you can label has a label. Thank you."
        return web.json_response({"item": visible, "progress": state, "reason": reason})

    async def _conflict(self, request: web.Request) -> web.Response:
        _name(request.query.get("who", ""))
        return await self._give_conflict()

    async def _settle(self, request: web.Request) -> web.Response:
        act = await self._act(request)
        if act.label not in ("right", "wrong"):
            raise InputError("A conflict is settled as right or wrong.")
        self.session.store.label(act.item or 0, act.who, act.label, note=act.note, final=True)
        return await self._give_conflict()

    async def _give_conflict(self) -> web.Response:
        state = await self._progress()
        conflicts = (entry for entry in self.session.states() if entry.status == "conflict")
        conflict, display = next(conflicts, None), None
        if conflict is not None:
            display = shown_item(self.session.row(conflict.item), conflict.item)
            statement = sorted(conflict.labels.items())
            display["said"] = ", ".join(f"{person}: {label}" for person, label in statement)
        reason = "All conflicts are settled."
        return web.json_response({"item": display, "progress": state, "reason": reason})

    async def _progress(self) -> dict[str, Any]:
        states = self.session.states()
        decided = sum(state.status == "decided" for state in states)
        conflicts = sum(state.status == "conflict" for state in states)
        precise = await self._precision(states, decided)
        goal = self.budget or precise.goal
        text = f"{decided:,} of about {goal:,} labels" if goal else count(decided, "label")
        if decided == len(self.session.keys):
            text = f"all {count(decided, 'answer')} labelled"
        elif precise.half is not None:
            text += f" · known to within {100 * precise.half:.1f} points"
        if precise.stop:
            text += " · goal reached, you may stop"
        return {
            "decided": decided,
            "conflicts": conflicts,
            "items": len(self.session.keys),
            "goal": goal,
            "half_width": precise.half,
            "stop": precise.stop,
            "text": text,
            "store": self.store_id,
        }

    async def _precision(self, states: list[ItemState], decided: int) -> Progress:
        """Return how precise the labels are; worked out again after a twentieth more of them."""
        if decided < _FEWEST_TOLD or self.precise is None:
            return Progress()
        if self._precise is None or not self._precise[0] <= decided < 1.05 * self._precise[0]:
            progress = await asyncio.to_thread(self.precise(states))
            self._precise = (decided, progress)
        return self._precise[1]


def widest_block(
    session: LabelSession, states: list[ItemState], **goals: Unpack[Goals]
) -> Callable[[], Progress]:
    """Return what works out how precise the labels are, of the block that is known least well.

    Parameters
    ----------
    session, states
        The pool and its labels.
    **goals
        precision in points of a share, threshold (an ECE to decide on), or budget of labels.
    """
    blocks = [block for block in session.blocks(states) if block.pool.labelled.any()]
    decided = sum(state.status == "decided" for state in states)
    return partial(_widest, blocks, decided, len(session.keys), **goals)


def _widest(
    blocks: Sequence[LabelledBlock], decided: int, items: int, **goals: Unpack[Goals]
) -> Progress:
    decisions = [
        stop_decision(block.pool, estimate=pool_estimate(block.pool), **goals) for block in blocks
    ]
    goal, precision = None, goals["precision"]
    if precision is not None:
        # As many times the labels so far as the block needs that is known least well.
        more = max(
            labels_for_precision(d.labels, block.pool.confidence.size, d.half_width, precision)
            / d.labels
            for block, d in zip(blocks, decisions, strict=True)
        )
        goal = min(round(decided * more), items)
    targets = precision is not None or goals["threshold"] is not None
    stop = targets and all(decision.stop for decision in decisions)
    half = max(decision.half_width for decision in decisions)
    return Progress(half, goal, stop)


def _told(status: int, text: str) -> web.Response:
    return web.json_response({"error": text or "The request was refused."}, status=status)


def _name(person: str) -> str:
    name = person.strip()
    if not name or len(name) > 80:
        raise InputError("Give a name of up to 80 characters.")
    return name
