"""The weights of the embedded model: which there are, and how to get them."""

from typing import Annotated, Any

from calibrant.clients.endpoints.weights import WEIGHTS, Weights, cache_folder, fetch
from calibrant.core.verb import Option, verb
from calibrant.inputs.provenance import document_head
from calibrant.report.typed import ModelsResult
from calibrant.verbs._options import column


@verb(example="calibrant models list", outputs=("json",))
def models() -> ModelsResult:
    """Return the models that can be fetched, and whether they are there.

    Examples
    --------
    >>> [entry["name"] for entry in models()["results"]]
    ['smollm2-135m-instruct']
    """
    return _document([_entry(weights) for weights in WEIGHTS.values()])


@verb(example="calibrant models fetch", outputs=("json",))
def fetch_model(
    model: Annotated[str, column(metavar="[MODEL]", argument=True)] = "smollm2-135m-instruct",
    *,
    force: Annotated[bool, Option()] = False,
) -> ModelsResult:
    """Download the weights of a model into the user's cache, checked by SHA-256.

    Parameters
    ----------
    model
        Name as in `models list`.
    force
        Fetch again even where a sound file is there.
    """
    fetch(model, force=force)
    return _document([_entry(WEIGHTS[model])])


def _document(entries: list[dict[str, Any]]) -> ModelsResult:
    return ModelsResult(
        {
            **document_head("models"),
            "folder": str(cache_folder() / "models"),
            "results": entries,
        }
    )


def _entry(weights: Weights) -> dict[str, Any]:
    path = cache_folder() / "models" / weights.file_name
    return {
        "name": weights.name,
        "fetched": path.is_file(),
        "path": str(path),
        "bytes": weights.size,
        "sha256": weights.sha256,
        "licence": weights.licence,
        "about": weights.about,
    }
