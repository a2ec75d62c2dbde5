"""Facts for benchmarks that come with calibrant: nothing to download, every source is named."""

from collections.abc import Callable

from calibrant.bench.questions.facts import FactSet
from calibrant.bench.questions.shipped.language import shipped_language
from calibrant.bench.questions.shipped.region import shipped_region

__all__ = ["SHIPPED", "shipped_language", "shipped_region"]

SHIPPED: dict[str, Callable[[], list[FactSet]]] = {
    "language": shipped_language,
    "region": shipped_region,
}
