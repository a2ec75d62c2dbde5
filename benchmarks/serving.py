"""A served policy: what it adds to a request, what it pays, and whether its promise is kept."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
import time
from pathlib import Path

import aiohttp
import polars as pl

import calibrant as cal
from benchmarks._recorded_world import (
    STUDY,
    mace_rows,
    mmlu_rows,
    questions_of,
    recorded_answers,
    recorded_tokens,
)
from benchmarks._serving_load import load_tables
from benchmarks.harness import DATA, Page
from calibrant.answers.semantics import SemanticsOptions, embedded_judge, grade_answers
from calibrant.apps.serve import open_front
from calibrant.data import Study
from calibrant.verbs.run import run

TOKEN = "secret"
LABELLED, UNSEEN, DRAWS = 2_000, 2_000, 10
ALPHA = {"verb": 0.3, "consistency": 0.25, "perplexity": 0.25}
"""Shares of wrong answers that these models can keep at all: right in 65 % and 72 % of all."""


# -- is the promise kept? --------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _front(policy, folder, *, endpoints, measured_by=None):
    front = open_front(policy, endpoints=endpoints, keys={}, price={}, per_token=False,
                       ledger=folder / f"served-{time.monotonic_ns()}.sqlite", token=TOKEN,
                       measured_by=measured_by)  # fmt: skip
    address = await front.start()
    try:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with aiohttp.ClientSession(headers=headers) as client:
            yield client, address
    finally:
        await front.stop()


async def _all(client, address, bodies, at_a_time=8):
    """Ask everything, and return status and body of each in order."""
    places = asyncio.Semaphore(at_a_time)

    async def one(body):
        async with places, client.post(f"{address}/chat/completions", json=body) as reply:
            return reply.status, await reply.json()

    return await asyncio.gather(*map(one, bodies))


def _body(text, **known):
    return {"messages": [{"role": "user", "content": text}], "calibrant": known, "temperature": 0}


def _row(name, alpha, policy, answered, wrong, differences):
    return (
        name, f"{alpha:.0%}", f"{policy.threshold:.3f}" if policy.threshold else "none",
        f"{answered:,}", f"{wrong / answered:.1%}" if answered else "none",
        f"{max(differences):.1e}" if differences else "none",
    )  # fmt: skip


async def _stated_and_sampled(folder, labelled, unseen):
    """Certify DeepSeek-V3 on MACE and serve it; the product grades the answers that were given."""
    rows = mace_rows(DATA, labelled + unseen, DRAWS)
    found = []
    async with recorded_answers(rows) as url:
        studies = {}
        for name, part in (("labelled", rows[:labelled]), ("unseen", rows[labelled:])):
            study = folder / name
            study.mkdir()
            lines = "".join(json.dumps(row) + "\n" for row in questions_of(part))
            (study / "questions.jsonl").write_text(lines)
            (study / "study.toml").write_text(STUDY.format(draws=DRAWS, url=url))
            await asyncio.to_thread(run, study)
            studies[name] = study
        for method in ("verb", "consistency"):
            saved, alpha = folder / f"{method}.json", ALPHA[method]
            cal.decide(studies["labelled"], max_error=alpha, only_method=method,
                       on_invalid="drop", cluster="question_id", save=saved)  # fmt: skip
            offline = Study(studies["unseen"]).read("scores").filter(method=method)
            expected = dict(offline.select("question_id", "confidence").iter_rows())
            bodies = [_body(row["question"], question_id=row["id"]) for row in rows[labelled:]]
            async with _front(saved, folder, endpoints={}) as (client, address):
                answers = await _all(client, address, bodies)
            found.append((method, alpha, cal.load_policy(saved),
                          *_counted(rows[labelled:], answers, expected)))  # fmt: skip
    return found


def _counted(rows, answers, expected):
    """Return answers given, wrong ones among them, and distances to the offline confidence."""
    texts, references, texts_asked, differences = [], [], [], []
    for row, (status, body) in zip(rows, answers, strict=True):
        told = body["calibrant"]
        said, measured = expected.get(row["id"]), told["confidence"]
        assert (said is None) == (measured is None), (row["id"], said, measured)
        if said is not None:
            differences.append(abs(said - measured))
        if status == 200:
            texts.append(body["choices"][0]["message"]["content"])
            references.append([[reference] for reference in row["references"]])
            texts_asked.append(row["question"])
    # As `run` has graded the labels.
    options = SemanticsOptions(embedded=embedded_judge())
    grades = grade_answers(texts, references, questions=texts_asked, options=options)
    return len(texts), sum(grade is not True for grade in grades), differences


async def _token_probability(folder, labelled, unseen):
    rows = mmlu_rows(DATA, labelled + unseen)
    saved, alpha = folder / "tokens.json", ALPHA["perplexity"]
    table = pl.DataFrame(rows[:labelled]).with_columns(model=pl.lit("m"))
    cal.decide(table, max_error=alpha, cluster="question_id", save=saved)
    async with recorded_tokens(rows) as url:
        bodies = [_body(f"Question {row['question_id']}", question_id=str(row["question_id"]))
                  for row in rows[labelled:]]  # fmt: skip
        front = _front(saved, folder, endpoints={"m": url}, measured_by="perplexity")
        async with front as (client, address):
            answers = await _all(client, address, bodies)
    differences = [abs(row["confidence"] - body["calibrant"]["confidence"])
                   for row, (_, body) in zip(rows[labelled:], answers, strict=True)]  # fmt: skip
    given = [row for row, (status, _) in zip(rows[labelled:], answers, strict=True)
             if status == 200]  # fmt: skip
    wrong = sum(not row["correct"] for row in given)
    return [("perplexity", alpha, cal.load_policy(saved), len(given), wrong, differences)]


def kept_promise(labelled=LABELLED, unseen=UNSEEN):
    """Return per method: alpha, policy, answers given, wrong ones, distances to the offline one."""
    with tempfile.TemporaryDirectory() as name:
        found = asyncio.run(_stated_and_sampled(Path(name), labelled, unseen))
        found += asyncio.run(_token_probability(Path(name), labelled, unseen))
    return found


def main() -> None:
    page = Page("serving", "A policy in front of its models", packages=["numpy", "aiohttp"])
    for part in load_tables():
        page.table(*part) if isinstance(part, tuple) else page.text(part)
    page.text(
        "Answers were told apart by rules; what the embedded judge adds is in "
        "[Serve a policy](../serve.md#in-a-program-without-a-server)."
    )
    found = kept_promise()
    page.table(
        f"{UNSEEN:,} unseen questions over HTTP, policies certified on {LABELLED:,} labels",
        ["method", "at most wrong", "threshold", "answers given", "wrong", "furthest from offline"],
        [_row(*one) for one in found],
    )
    page.text(
        "Stated confidence and consistency are recorded answers of DeepSeek-V3 to MACE questions, "
        "asked with the study's prompts. Rules read and grade them, and the embedded judge where "
        "its weights are there. Token probabilities are those of GPT-4o on MMLU-Pro with their "
        "recorded grades. The served confidence is held against the one that `run`, or the table, "
        "has for the same question. Labelled and unseen questions are drawn by chance from one "
        "pool, so each question counts by itself: `decide` is told so with `--cluster "
        "question_id`. Left to itself it finds that questions of one category are right and wrong "
        "together, and promises nothing at these limits."
    )
    page.write()


if __name__ == "__main__":
    main()
