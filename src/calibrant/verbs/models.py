"""The weights of the embedded model: which there are, and how to get them."""

from collections.abc import Iterable
from typing import Annotated

from calibrant.core.shared_options import column
from calibrant.core.verb import Option, verb
from calibrant.data.sources.input import document_head
from calibrant.models.inference.weights import WEIGHTS, Weights, cache_folder, fetch
from calibrant.report.result import ModelsResult


@verb(example="calibrant models list", outputs=("json",))
def models() -> ModelsResult:
    """Return the models that can be fetched, and whether they are there.

    Examples
    --------
    >>> [entry["name"] for entry in models()["results"]]
    ['smollm2-135m-instruct']
    """
    return _document(WEIGHTS.values())


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
    return _document([WEIGHTS[model]])


def _document(models: Iterable[Weights]) -> ModelsResult:
    folder = cache_folder() / "models"
    entries = [
        {
            "name": weights.name,
            "fetched": (folder / weights.file_name).is_file(),
            "path": str(folder / weights.file_name),
            "bytes": weights.size,
            "sha256": weights.sha256,
            "licence": weights.licence,
            "about": weights.about,
        }
        for weights in models
    ]
    return ModelsResult({**document_head("models"), "folder": str(folder), "results": entries})
