"""What `view` shows as it is: a page, a result, or a study that is being run."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibrant.core.document import load_document
from calibrant.core.errors import CalibrantError, InputError
from calibrant.records import Study
from calibrant.records.ledger.leases import LedgerProgress, ledger_progress
from calibrant.report import render_html
from calibrant.workflows.analysis import study_page
from calibrant.workflows.run import run

PROGRESS = "/progress"
_FRESH_SECONDS = 20.0


@dataclass(slots=True)
class Viewed:
    """A path as a page that follows its files.

    Examples
    --------
    >>> Viewed(Path("nothing.html")).check()
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: nothing.html: there is nothing to view
      -> ...
    """

    path: Path
    _page: tuple[str, str] | None = field(default=None, init=False)
    _planned: int | None = field(default=None, init=False)

    def check(self) -> None:
        """Refuse a path that cannot be shown."""
        if not self.path.exists():
            raise InputError(
                "there is nothing to view",
                source=str(self.path),
                hint="name a study folder, a page or a result (JSON)",
            )
        if self.path.is_dir() and not Study.is_study(self.path):
            raise InputError("this folder is no study: it has no study.toml", source=str(self.path))

    def version(self) -> str:
        """Return a mark that changes when the page would."""
        newest = max((path.stat().st_mtime_ns for path in self._files()), default=0)
        # While a run goes on, answers arrive faster than a page can be read.
        return f"{newest}-{self._ledger().draws // 50 if self.path.is_dir() else 0}"

    def page(self) -> str:
        """Return the page, built again only where its files have changed."""
        version = self.version()
        if self._page is None or self._page[0] != version:
            # The page knows its version: what came while it was built is not missed.
            self._page = (version, self._built(f"{PROGRESS}?page={version}"))
        return self._page[1]

    def progress(self) -> dict[str, Any]:
        """Return what the open page asks for: its version, how far, what it cost, is it done."""
        found: dict[str, Any] = {"version": self.version(), "text": "", "share": None}
        if self.path.is_dir():
            ledger = self._ledger()
            if ledger.running:
                planned = self._wanted()
                share = min(ledger.draws / planned, 1.0) if planned else None
                text = _running_text(ledger, planned)
                return {**found, "text": text, "share": share, "done": False}
            if not Study(self.path).results():
                return {**found, "text": _waiting_text(ledger), "done": False}
        newest = max((path.stat().st_mtime for path in self._files()), default=0.0)
        return {**found, "done": time.time() - newest > _FRESH_SECONDS}

    def _files(self) -> list[Path]:
        if self.path.is_dir():
            study = Study(self.path)
            return [*study.path.glob("results/*.json"), *study.path.glob("tables/*.parquet")]
        return [self.path]

    def _ledger(self) -> LedgerProgress:
        return ledger_progress(Study(self.path).ledger_path)

    def _wanted(self) -> int:
        """Return how many answers the run wants, looked up once; 0 where that cannot be told."""
        if self._planned is None:
            try:
                plan = run(self.path, dry_run=True)["plan"]
                self._planned = int(plan["total"]["draws_wanted"])
            except CalibrantError:
                self._planned = 0
        return self._planned

    def _built(self, live: str) -> str:
        if self.path.is_dir():
            return self._study_page(live)
        if self.path.suffix == ".html":
            return self.path.read_text(encoding="utf-8")
        return render_html([load_document(self.path)], live=live)

    def _study_page(self, live: str) -> str:
        study = Study(self.path)
        if study.results():
            return study_page(study, live=live)
        return render_html([_running_document(study, self._ledger())], live=live)


def _waiting_text(ledger: LedgerProgress) -> str:
    if not ledger.draws:
        return "Waiting for the first answers."
    return f"{ledger.draws:,} answers{_cost_text(ledger)}. Waiting for the results."


def _cost_text(ledger: LedgerProgress) -> str:
    return ", cost unknown" if ledger.cost is None else f", ${ledger.cost:,.2f} so far"


def _running_text(ledger: LedgerProgress, planned: int) -> str:
    cost = _cost_text(ledger)
    failed = f", {ledger.failures:,} calls failed" if ledger.failures else ""
    of = f" of at most {planned:,}" if planned else ""
    return f"Running: {ledger.draws:,}{of} answers{cost}{failed}"


def _running_document(study: Study, ledger: LedgerProgress) -> dict[str, Any]:
    """Return the study as far as its ledger holds it."""
    name = str(study.config.get("name", study.path.name))
    asked = [{**row, "cut_off": 0} for row in ledger.asked]
    return {
        "schema": "calibrant.study/1",
        "source": study.path.name,
        "study": study.path.name,
        "name": name,
        "seed": study.config.get("seed"),
        "versions": {},
        "models": [],
        "prompts": [],
        "asked": asked,
        "graders": {},
        "results": [],
    }
