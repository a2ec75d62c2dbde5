"""What a call costs, from a table that the user can edit."""

from dataclasses import replace
from importlib import resources
from pathlib import Path

from calibrant.core.document import load_toml
from calibrant.core.errors import BudgetError, InputError
from calibrant.models.asks import Price
from calibrant.models.endpoints.batches import DISCOUNT
from calibrant.models.study.config import ModelConfig, StudyConfig
from calibrant.models.study.settings import Settings

FREE = Price(0.0, 0.0)


def load_prices(path: Path | None = None) -> dict[str, Price]:
    """Return the price table: the shipped one, overlaid with the user's where there is one."""
    shipped = resources.files("calibrant.models.study") / "prices.toml"
    prices = _parse(shipped.read_text(encoding="utf-8"), source="shipped prices.toml")
    if path is not None:
        if not path.is_file():
            raise InputError("there is no such price table", source=str(path))
        prices |= _parse(path.read_text(encoding="utf-8"), source=str(path))
    return prices


def price_of(model: ModelConfig, prices: dict[str, Price]) -> Price | None:
    """Return the price of a model, or ``None`` where it is unknown.

    The embedded model and replays cost nothing, batches half. A dated name finds
    the price of its family, the longest name first.
    """
    if model.client in ("embedded", "replay"):
        return FREE
    share = DISCOUNT if "batch" in model.options else 1.0
    for name in sorted(prices, key=len, reverse=True):
        if model.price == name or model.price.startswith(f"{name}-"):
            full = prices[name]
            return replace(full, prompt=share * full.prompt, completion=share * full.completion)
    return None


def study_prices(config: StudyConfig) -> dict[str, Price | None]:
    """Return the price of every model of the study; a cap on money needs all of them."""
    table = load_prices(config.budget.prices)
    prices = {model.name: price_of(model, table) for model in config.models}
    unknown = [name for name, price in prices.items() if price is None]
    if unknown and config.budget.max_cost is not None:
        raise BudgetError(
            f"budget.max_cost is set, but the price of {', '.join(unknown)} is unknown\n"
            '  -> add it to a price table and name that: [budget] prices = "prices.toml"'
        )
    return prices


def _parse(text: str, *, source: str) -> dict[str, Price]:
    tables = load_toml(text, source=source).items()
    return {name: Settings(item, source=source, path=name).fill(Price) for name, item in tables}
