"""A language model on the census: two prompts of one question, and what they are worth.

`CALIBRANT_ASK=300 python -m studies census_models` asks for so many seconds and goes on where it
was stopped; without it the page is written from the answers that are kept.
"""

from __future__ import annotations

import os
import time

import numpy as np
import polars as pl

from calibrant import audit
from calibrant.data.questions import TabularTask, tabular_questions
from calibrant.models.inference.llama import Llama, Tokenizer
from calibrant.models.inference.weights import Gguf, weights_path
from calibrant.trust import GroupingLoss
from studies._page import DATA, ROOT, StudyPage, estimate
from studies.shared_outcome import at_zero, pools

MODEL = "smollm2-135m-instruct"
ANSWERS = ROOT / "studies" / "census_answers.parquet"
PEOPLE, STEP = 1_000, 10
FEATURES = ("age", "workclass", "education", "marital_status", "occupation", "relationship",
            "race", "sex", "hours_per_week", "native_country")  # fmt: skip
TASK = TabularTask(
    "y",
    1,
    "",
    {
        "age": "The age is {value} years.",
        "workclass": "The class of worker is {value}.",
        "education": "The highest education is {value}.",
        "marital_status": "The marital status is {value}.",
        "occupation": "The occupation is {value}.",
        "relationship": "The relationship in the household is {value}.",
        "race": "The race is {value}.",
        "sex": "The sex is {value}.",
        "hours_per_week": "The usual hours of work per week are {value}.",
        "native_country": "The country of birth is {value}.",
    },
    values={name: {"?": "unknown"} for name in ("workclass", "occupation", "native_country")},
)
CHOICE = (
    "\nQuestion: What is the yearly income of this person?\nA. Below $50,000.\nB. Above $50,000.\n"
    "Answer:"
)
NUMBER = (
    "\nQuestion: What is the probability that the yearly income of this person is above $50,000?\n"
    "Answer (between 0 and 1): 0."
)


def people() -> pl.DataFrame:
    """Return the people who are asked about: a sample of the test part, in a random order."""
    table = pl.read_parquet(DATA / "tabular" / "uci_adult_with_probs.parquet")
    test = table.with_row_index("person").filter(pl.col("split") == "test")
    return test.sample(PEOPLE, seed=0, shuffle=True)


def ask(seconds: float) -> None:
    """Ask about people who were not asked about yet, and keep what was answered."""
    began = time.perf_counter()
    kept = pl.read_parquet(ANSWERS) if ANSWERS.exists() else None
    asked = people()
    # Written of all at once: ten people may have no outcome of one kind.
    asked = asked.with_columns(asked_text=tabular_questions(asked, TASK)["text"])
    waiting = asked if kept is None else asked.join(kept, on="person", how="anti")
    file = Gguf(weights_path(MODEL))
    names = [file.settings[f"tokenizer.ggml.{name}"] for name in ("tokens", "merges")]
    tokens, model = Tokenizer(*names), Llama(file)
    options = [tokens(word)[0] for word in (" A", " B", *"0123456789")]
    output = file.rows("token_embd.weight", np.array(options))
    ends = [tokens(text) for text in (CHOICE, NUMBER)]
    for start in range(0, waiting.height, STEP):
        if time.perf_counter() - began > seconds:
            break
        part = waiting[start : start + STEP]
        texts = [tokens(text.rstrip("\n")) for text in part["asked_text"]]
        states = model.last_states([(text, ends) for text in texts])
        logits = np.float64(states @ output.T).reshape(part.height, 2, len(options))
        answers = part.select("person").with_columns(
            choice=pl.Series(np.float32(_shares(logits[:, 0, :2])).tolist()),
            digits=pl.Series(np.float32(_shares(logits[:, 1, 2:])).tolist()),
        )
        kept = answers if kept is None else pl.concat([kept, answers])
        kept.write_parquet(ANSWERS)
    print(f"   {kept.height:,} of {PEOPLE:,} people", flush=True)


def _shares(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def asked_people() -> pl.DataFrame:
    """Return the people who were asked about, with the probability that each prompt gives."""
    digits = pl.concat_list((pl.col("digits").list.get(n) * (n + 0.5) / 10) for n in range(10))
    kept = pl.read_parquet(ANSWERS).select(
        "person", choice=pl.col("choice").list.get(1), number=digits.list.sum()
    )
    table = people().join(kept, on="person", maintain_order="left")
    return table.rename({"p_lr3": "three columns", "p_hgb": "all columns"})


def prompts(page: StudyPage, table: pl.DataFrame) -> None:
    """Write what both prompts and two fitted scores are worth on the same people."""
    names = ("choice", "number", "three columns", "all columns")
    right, rows = table["y"].cast(pl.Float64).to_numpy(), []
    for name in names:
        said = table[name].cast(pl.Float64).to_numpy().clip(0, 1)
        audited = audit(said, right, resamples=500)["results"][0]["metrics"]
        loss = GroupingLoss().fit(table.select(FEATURES), said, right)
        cells = (estimate(audited[metric]) for metric in ("ece", "auroc", "brier"))
        left = f"{loss.value_:.4f}, at least {loss.lower_:.4f}"
        rows.append([name, f"{said.mean():.3f}", *cells, left])
    page.heading("Two prompts beside two fitted scores")
    page.text(
        f"{table.height:,} people, {right.mean():.1%} above 50,000 dollars. 'choice': share of B "
        "among A and B; 'number': mean of the digit after '0.'. The fitted scores saw the training "
        "part. Figures 11 to 15 of the paper are about the last columns."
    )
    page.table(["confidence", "mean", "ECE", "AUROC", "Brier score", "grouping loss"], rows)


def cascades(page: StudyPage, table: pl.DataFrame) -> None:
    """Write what tolerance 0 reaches where the language model is asked first."""
    page.heading("Cascades on one outcome, the language model first")
    names = ("choice", "number", "three columns", "all columns")
    said = table.select(pl.col(names).cast(pl.Float64)).to_numpy().clip(0, 1)
    some = pools(names, table.select(FEATURES), said, table["y"].to_numpy(), [1, 2, 4, 8])
    page.table(
        ["data", "pools", "rule", "accuracy against the last", "cost", "better and cheaper"],
        at_zero("census, two prompts and two fitted scores", list(some)),
    )


def main() -> None:
    if "CALIBRANT_ASK" in os.environ:
        ask(float(os.environ["CALIBRANT_ASK"]))
    if not ANSWERS.exists():
        print(f"   left out: {ANSWERS.name} is absent; CALIBRANT_ASK=300 asks", flush=True)
        return
    table = asked_people()
    page = StudyPage("census_models", "A language model on the census")
    page.text(
        f"{MODEL} (4-bit weights, numpy) was asked about {table.height:,} people of the test part "
        "of UCI Adult, in a seeded random order, on a CPU: larger models were not at hand. The "
        f"answers are `studies/{ANSWERS.name}`: `person` is the row in "
        "uci_adult_with_probs.parquet (UCI Adult, CC BY 4.0), `choice` the shares of A and B, "
        "`digits` those of 0 to 9; Apache-2.0 weights, no sampling. The sentences are those of "
        "`calibrant init --table`, the two questions those of Folktexts."
    )
    prompts(page, table)
    cascades(page, table)
    page.write()
