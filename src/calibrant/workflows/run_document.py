"""What a run says about itself: the study it asks, and the head of its document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

import calibrant
from calibrant.clients.asks import Price
from calibrant.clients.protocol import Client
from calibrant.collect import Forecast, ModelConfig, Question, Selection, StudyConfig, Wanted


@dataclass(frozen=True)
class Prepared:
    """A study that is checked and ready to be asked."""

    config: StudyConfig
    table: pl.DataFrame
    questions: list[Question]
    clients: Mapping[str, Client]
    selections: Mapping[str, Selection]
    prices: Mapping[str, Price | None]

    @property
    def wanted(self) -> dict[str, Wanted]:
        """What every model is asked for."""
        return {name: selection.wanted for name, selection in self.selections.items()}


def _price(model: ModelConfig, price: Price | None) -> dict[str, Any] | None:
    """Return the price that costs were computed with; None where there is none to check."""
    if price is None or model.client in ("embedded", "replay"):
        return None
    return asdict(price)


def run_document(prepared: Prepared, expected: Forecast | None, *, dry_run: bool) -> dict[str, Any]:
    """Return the part of the document that is known before anything is sent."""
    config = prepared.config
    return {
        "schema": "calibrant.run/1",
        "version": calibrant.__version__,
        "study": str(config.folder),
        "name": config.name,
        "seed": config.seed,
        "dry_run": dry_run,
        "questions": len(prepared.questions),
        "models": [
            {
                "model": model.name,
                "client": model.client,
                "name_at_endpoint": model.model,
                "endpoint": prepared.clients[model.name].endpoint,
                "endpoints": getattr(prepared.clients[model.name], "endpoints", None),
                "priced": prepared.prices[model.name] is not None,
                "price": _price(model, prepared.prices[model.name]),
                "unavailable": dict(prepared.selections[model.name].unavailable),
            }
            for model in config.models
        ],
        "sampling": {
            "draws": config.sampling.draws,
            "temperature": config.sampling.temperature,
        },
        "plan": None if expected is None else expected.to_dict(),
        "results": [],
    }
