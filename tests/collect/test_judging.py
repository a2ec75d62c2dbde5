"""The bound on judge calls: it is shown before anything is sent, and it holds."""

from pathlib import Path

import polars as pl
import pytest

from calibrant.answers.semantics.annotate import annotate
from calibrant.answers.semantics.judge import SimulatedJudge
from calibrant.answers.semantics.settle import SemanticsOptions
from calibrant.models.asks import Price
from calibrant.models.ledger import DrawRow, Ledger, LedgerKey
from calibrant.models.study.config import parse_config
from calibrant.models.study.costs import answers_of, forecast, judge_row, load_prices
from calibrant.models.study.endpoints import open_client
from calibrant.models.study.plan import Inquiry, Wanted
from calibrant.models.study.prompts import PlannedQuestion
from ledgers import add_draws

JUDGE = {"client": "vllm", "name": "arbiter", "model": "gpt-4o-mini"}
WANTED = Wanted({"greedy": 1, "samples": 5, "p_true": 5})


def config(**semantics):
    values = {
        "questions": "q",
        "prompts": {"style": "short"},
        "models": [{"name": "m", "client": "llamacpp"}],
        "semantics": {"judge": JUDGE, **semantics},
    }
    return parse_config(values, folder=Path(), source="study.toml")


def questions(count=1):
    return [
        PlannedQuestion(f"q{number}", "Why did the old bridge fall?") for number in range(count)
    ]


def inquiry(study, count=1):
    clients = {"m": open_client(study.models[0])}
    asked = (study, questions(count), {"m": WANTED}, clients, {"m": None})
    return Inquiry(*asked, extract=lambda _, text: text)


def bound(**semantics):
    return judge_row(inquiry(config(**semantics)), price=Price(1.0, 1.0))


def test_the_bound_counts_answers_and_not_votes():
    assert answers_of(WANTED, topk=3) == 6
    assert bound().calls == 6 * 4
    assert bound(clustering="rules").calls == 6
    assert bound(grading="rules").calls == 6 * 3
    assert bound(clustering="rules", grading="exact") is None
    assert bound(max_judge_calls=7).calls == 7
    assert "max_judge_calls" in bound(max_judge_calls=7).note
    assert bound().cost == pytest.approx((bound().prompt_tokens + 24 * 64) / 1e6)


@pytest.mark.parametrize("same", [True, False])
def test_no_annotation_asks_more_often(same):
    causes = ["rotten wood", "a heavy cart", "high water", "bad mortar", "an old quarrel", "frost"]
    texts = [f"because of {cause} under it" for cause in causes]
    draws = pl.DataFrame(
        {
            "question_id": ["q0"] * 6,
            "model": ["m"] * 6,
            "draw": [0, 0, 1, 2, 3, 4],
            "purpose": ["greedy", *["answer"] * 5],
            "text": texts,
        }
    )
    table = pl.DataFrame(
        {"question_id": ["q0"], "text": ["Why did the old bridge fall?"],
         "references": [[["the river rose"]]]}
    )  # fmt: skip
    judge = SimulatedJudge({text: 0 if same else place for place, text in enumerate(texts)})
    found = annotate(draws, table, options=SemanticsOptions(judge=judge))
    assert 6 < found.document["judge_calls"] <= bound().calls


def test_the_forecast_has_a_row_for_the_judge(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as ledger:

        def row():
            return forecast(inquiry(config(), count=2), ledger).rows[-1]

        assert (row().model, row().purpose, row().calls) == ("arbiter", "judge", 48)
        assert "12 answers" in row().note
        assert row().cost > 0
        with ledger.writing():
            (request,) = ledger.register([LedgerKey("e", "j", "judge", b"{}")])
            add_draws(ledger, [DrawRow(request, 0, 1, b"{}")])
        assert (row().draws_held, row().calls) == (1, 47)


def test_shipped_prices_say_from_when_they_are_and_to_check_them():
    for price in load_prices().values():
        assert price.as_of
        assert "check before use" in price.source
