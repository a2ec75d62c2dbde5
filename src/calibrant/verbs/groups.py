"""`groups`: for whom is the confidence wrong?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Unpack

import numpy as np
import polars as pl
from msgspec import Struct, structs

from calibrant.answers.features import embed_texts, features_hint, refuse_outcome, without_missing
from calibrant.core import shared_options as opt
from calibrant.core.arrays import Array, Estimate, Floats, named_stream
from calibrant.core.errors import InputError, error_about, error_source
from calibrant.core.hints import Hint
from calibrant.core.places import writing
from calibrant.core.verb import Option, verb
from calibrant.data import ScoreBlock, Scores
from calibrant.data.sources.input import document_head, origin_of, today
from calibrant.data.sources.options import table_settings
from calibrant.findings.claims.groups import groups_claims
from calibrant.findings.documents.groups import GroupsEntry, Trend
from calibrant.report.result import GroupsResult
from calibrant.trust.audit import GroupOptions, across_models, groups_entry
from calibrant.trust.confidence_groups import GroupCorrector
from calibrant.trust.group_rules import text_groups, word_vectors
from calibrant.trust.grouping_loss import exact_difference, size_trend, tuned_pairs
from calibrant.verbs.dependent_rows import DependentBlocks
from calibrant.verbs.opening.open_input import read_scores
from calibrant.verbs.score_documents import scores_document, with_rows

_NAMES = ("grouping_loss", "calibration_loss", "epistemic_loss", "brier", "rest", "groups")


@verb(
    example="calibrant groups scores.csv --features domain,length --html groups.html",
    shared=opt.TABLE,
)
def groups(
    data: opt.ScoresData,
    *,
    features: Annotated[Sequence[str], opt.names()] = (),
    group: Annotated[Sequence[str], Option(metavar="RULE", kind="several")] = (),
    embed: opt.EmbedColumn = None,
    embed_dimensions: opt.EmbedDimensions = 8,
    embed_with: Annotated[str, opt.advanced(choices=("sentences", "words"), needs="embed")] = (
        "sentences"
    ),
    models: Annotated[Sequence[str] | None, opt.names()] = None,
    min_group: Annotated[int, Option(metavar="N", min=2, max=10**9)] = 50,
    alpha: Annotated[float, opt.share()] = 0.05,
    costs: opt.CostMap = None,
    threshold: Annotated[float | None, opt.share()] = None,
    level: opt.Level = 0.95,
    estimator: Annotated[str, opt.advanced(choices=("boosting", "tree", "binned"))] = "boosting",
    sizes: Annotated[
        Mapping[str, float] | None, opt.advanced(metavar="A=1,B=8", kind="map")
    ] = None,
    tuned: Annotated[Sequence[str], opt.advanced(metavar="A=B,..", kind="names")] = (),
    save: Annotated[str | Path | None, opt.written()] = None,
    wrong: opt.WrongRows = 0,
    seed: opt.Seed = 0,
    **table: Unpack[opt.TableOptions],
) -> GroupsResult:
    """Find groups where a confidence is off beyond its overall error.

    Parameters
    ----------
    data
        Path, study folder or dataframe with scores.
    features
        Columns that may describe a group.

        A column of vectors (embeddings, hidden states) is taken too: its rows are grouped by
        closeness.
    group
        A group to look at in any case, such as 'age<25 and sex=F'; may be given several
        times, and pairs of them are compared.

        A name may stand in front, followed by a colon. Named groups
        are compared with each other.
    embed
        Column of texts. They are grouped by meaning, and the groups are named by their typical
        words.
    embed_dimensions
        Components of the embedding that serve the grouping loss.
    embed_with
        Vectors of texts: from a sentence embedder (extra local), or from their words.

        ``"sentences"`` needs the extra `local`; ``"words"`` needs nothing.
    models
        Look at these models only.
    min_group
        Rows that a group must have.
    alpha
        Level of the flags.

        See `calibrant.trust.ConfidenceGroups`.
    costs
        See `calibrant.trust.DecisionRisk`.
    threshold
        Where the confidence decides; default: the optimum.
    level
        Coverage of the intervals.
    estimator
        Grouping loss: by boosted trees beyond a spline, and beside it as published, by
        honest trees or within bins.

        ``"tree"`` and ``"binned"`` add ``published_loss``: `calibrant.trust.TreeGroupingLoss`
        or `calibrant.trust.BinnedGroupingLoss`.
    sizes
        Sizes of the models: does the grouping loss fall with size?
    tuned
        Pairs of a model and its tuned version: does tuning lower the grouping loss?

        Either adds ``trend`` (with `estimator`, of the published loss).
    save
        Write the corrected confidence as JSON.

        `calibrant.trust.GroupCorrector.load` reads it.
    wrong
        List so many answers that are wrong with the highest confidence, under ``wrong``.
    seed
        Seed of redrawn outcomes and folds.
    **table
        How the table is read, see `calibrant.data.load_scores`.

    Returns
    -------
    GroupsResult
        A document ``calibrant.groups/1``: one entry per model and method in ``results``; with a
        single entry its numbers stand at the top as well, with several ``across`` sums them up.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> topic = rng.choice(["law", "maths"], size=3000)
    >>> right = rng.random(3000) < np.where(topic == "law", 0.5, 0.9)
    >>> table = {"confidence": np.full(3000, 0.7), "correct": right.astype(int), "topic": topic}
    >>> groups(table, features=["topic"])["groups"][0]["flagged"]
    True
    """
    choice = GroupOptions(tuple(group), min_group, alpha, costs, threshold, level, seed, estimator)
    opt.refuse_mended(table, save, "a saved correction")
    refuse_outcome(features, table["correct"])
    selection = [name for name in (*features, embed) if name is not None]
    settings = {**structs.asdict(choice), "models": models, **table_settings(table)}
    settings |= {name: value for name, value in (("sizes", sizes), ("tuned", tuned)) if value}
    # The seed stands beside them.
    del settings["seed"]
    head = document_head("groups", data, seed=seed, settings=settings)
    with error_source(head["source"]):
        if not selection:
            every = read_scores(data, {**table, "on_invalid": "drop", "repeats": True}).frame
            raise InputError("which columns make the groups?", hint=features_hint(every))
        scores = read_scores(data, table, features=selection, others=True)
        scores = without_missing(scores, selection, table["on_invalid"])
        columns = _Columns(scores.frame, embed_dimensions, seed)
        for name in features:
            columns.add(name)
        if embed is not None:
            columns.add_texts(embed, embed_with)
        joint = DependentBlocks.of_scores(scores, _blocks(scores, columns.frame, models), selection)
        blocks = joint.blocks
    if save is not None and len(blocks) > 1:
        rule = f"a corrected confidence is for one model and method; the table has {len(blocks)}"
        raise InputError(rule, source=head["source"], hint=Hint("choose with {models}"))
    fits = [_entry(block, columns, choice, head["source"]) for block in blocks]
    if save is not None:
        origin = {**origin_of(head), **blocks[0].keys}
        with writing(save):
            replace(fits[0][1], made=today(), fitted_on=origin).save(save)
    results = [entry for entry, _ in fits]
    several = len(results) > 1
    how = {"named": several, "costs": costs is not None}
    claims = [claim for entry in results for claim in groups_claims(entry, **how)]
    head |= {"features": columns.names, "embedding": columns.about or None}
    document = scores_document(head, scores.only(model=models), results, claims)
    joint.tell(document)
    document["data"]["notes"] = [*document["data"].get("notes", ()), *_searched_rows(results)]
    document["across"] = across_models(results) if several else []
    if sizes or tuned:
        document["trend"] = _trend(results, blocks, sizes, tuned, level, seed)
    if not several:
        document |= {name: getattr(results[0], name) for name in _NAMES}
    return with_rows(GroupsResult(document), data, table, wrong, models=models)


def _trend(
    results: Sequence[GroupsEntry],
    blocks: Sequence[ScoreBlock],
    sizes: Mapping[str, float] | None,
    tuned: Sequence[str],
    level: float,
    seed: int,
) -> Trend:
    """Return how the grouping loss changes with the size and with the tuning of the models."""
    if len({entry.method for entry in results}) > 1:
        raise InputError(Hint("{sizes} and {tuned} compare models of one method"))
    published = all(entry.published_loss for entry in results)
    losses = {entry.model: entry.published_loss or entry.grouping_loss for entry in results}
    loss = {name: float(matches.value or 0.0) for name, matches in losses.items()}
    # The default reaches from a lower bound to a ceiling: that is no interval of a difference.
    halves = {
        name: ((matches.high or 0.0) - (matches.low or 0.0)) / 2
        for name, matches in losses.items()
        if published and matches.high is not None
    }
    rows = {str(block.keys["model"]): block for block in blocks}

    def exact(base: str, other: str) -> Estimate | None:
        return _one_outcome(rows[base], rows[other], seed)

    pairs = [(base.strip(), other.strip()) for base, _, other in (t.partition("=") for t in tuned)]
    return Trend(
        of="published_loss" if published else "grouping_loss",
        loss=loss,
        size=size_trend(loss, sizes, level=level, seed=seed) if sizes else None,
        tuned=tuned_pairs(loss, pairs, level=level, halves=halves, exact=exact) if pairs else None,
    )


def _one_outcome(base: ScoreBlock, tuned: ScoreBlock, seed: int) -> Estimate | None:
    """Return the exact difference of two models asked about one outcome; None for any other."""
    frames = [
        block.frame.select(
            "question_id",
            said=block.confidence,
            right=block.correct,
            place=np.arange(len(block.correct)),
        )
        for block in (base, tuned)
    ]
    pair = frames[0].join(frames[1], on="question_id", how="inner")
    if pair.height < frames[0].height or not (pair["right"] == pair["right_right"]).all():
        return None
    columns = (pair[name].to_numpy() for name in ("right", "said", "said_right"))
    cluster = None if base.units is None else base.units[pair["place"].to_numpy()]
    return exact_difference(*columns, cluster=cluster, seed=seed)


def _searched_rows(results: Sequence[GroupsEntry]) -> list[str]:
    """Return how many rows the groups rest on, where rows of one unit count once."""
    counts = {(entry.n_evaluated, entry.n) for entry in results if entry.n_evaluated < entry.n}
    return [
        f"Groups are looked for in {few:,} of {every:,} rows, one of each unit of alike rows."
        for few, every in sorted(counts)[:1]
    ]


def vector_matrix(column: pl.Series) -> Floats:
    """Return a column of vectors (embeddings, hidden states) as a matrix.

    Examples
    --------
    >>> vector_matrix(pl.Series("v", [[1.0, 2.0], [3.0, 4.0]])).shape
    (2, 2)
    """
    if not isinstance(column.dtype, pl.List | pl.Array):
        raise InputError(f"{column.name!r} holds {column.dtype}, not vectors of numbers")
    lengths = column.list.len() if isinstance(column.dtype, pl.List) else None
    if column.null_count() or (lengths is not None and lengths.n_unique() != 1):
        raise InputError(f"the vectors of {column.name!r} must all be there and of one length")
    matrix = np.asarray(column.to_list(), dtype=np.float64)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise InputError(f"the vectors of {column.name!r} must hold finite numbers")
    return matrix


class _Columns(Struct):
    """What describes groups: texts and vectors become groups with names, and numbers for the loss.

    `numbers` are those of the `names` that serve the loss alone, `about` says what the groups are.
    """

    frame: pl.DataFrame
    dimensions: int
    seed: int
    names: list[str] = []
    numbers: list[str] = []
    about: dict[str, Any] = {}

    def add(self, name: str) -> None:
        """Take a column as it is; rows of one that holds vectors are grouped by closeness."""
        if self.frame.schema[name].is_nested():
            self._add_vectors(name, f"{name} group", vector_matrix(self.frame[name]), None)
        else:
            self.names.append(name)

    def add_texts(self, name: str, embedder: str) -> None:
        """Group texts by meaning."""
        texts = self.frame[name].cast(pl.String)
        if embedder == "words":
            vectors = word_vectors(texts.to_list(), seed=self.seed)
        else:
            vectors, embedder = embed_texts(texts)
        width = self._add_vectors(name, f"{name} about", vectors, texts.to_list())
        self.about |= {"column": name, "embedder": embedder, "dimensions": width}

    def _add_vectors(self, name: str, label: str, vectors: Array, texts: list[str] | None) -> int:
        from sklearn.decomposition import PCA

        grouping = text_groups(vectors, texts, seed=self.seed)
        self.about.setdefault("groups", {})[label] = grouping.about
        width: int = min(self.dimensions, *vectors.shape)
        points = PCA(n_components=width, svd_solver="full").fit_transform(vectors)
        new = {f"{name}_{number + 1}": pl.Series(points[:, number]) for number in range(width)}
        self.frame = self.frame.with_columns(pl.Series(label, grouping.label), **new)
        self.numbers += new
        self.names += [label, *new]
        return width


def _blocks(scores: Scores, frame: pl.DataFrame, models: Sequence[str] | None) -> list[ScoreBlock]:
    if models is not None:
        present = set(frame["model"].unique())
        unknown = [name for name in models if name not in present]
        if unknown:
            rule = f"there is no model {unknown[0]!r}; known: {', '.join(sorted(present))}"
            raise InputError(rule, source=scores.source)
        frame = frame.filter(pl.col("model").is_in(list(models)))
    if frame.height == 0:
        raise InputError("no row is left", source=scores.source)
    return list(replace(scores, frame=frame).blocks())


def _entry(
    block: ScoreBlock, columns: _Columns, options: GroupOptions, source: str
) -> tuple[GroupsEntry, GroupCorrector]:
    stream = named_stream(options.seed, *block.keys.items())
    seeded = structs.replace(options, seed=int(stream.integers(2**31)))
    with error_about(f"model {block.keys['model']}, method {block.keys['method']}", source):
        return groups_entry(
            block.keys,
            block.frame.select(columns.names),
            block.confidence,
            block.correct,
            options=seeded,
            units=block.units,
            numbers=columns.numbers,
        )
