"""Each fault that an endpoint can have, on a real HTTP server."""

import pytest

from calibrant.models import EndpointRefusedError
from clients.server import error, half_json, half_written, reset, silence, web_page
from clients.sessions import questions, texts
from ledgers import failures, in_flight

ASKS = questions(12, draws=3)


@pytest.fixture
def undisturbed(server, session):
    """What a good endpoint answers to ASKS; the server counts from 0 again."""

    def answer(tmp_path):
        from calibrant.models.ledger import Ledger
        from clients.sessions import Session

        with Ledger(tmp_path / "undisturbed.sqlite") as ledger:
            expected = texts(Session(server, ledger).run(ASKS))
        server.calls.clear()
        server.headers.clear()
        server.drawn.clear()
        return expected

    return answer


@pytest.mark.parametrize(
    "fault",
    [
        lambda: error(429, "slow down", headers={"Retry-After": "0.05"}),
        lambda: error(429, "slow down"),
        lambda: error(500),
        lambda: error(503, headers={"retry-after-ms": "20"}),
        lambda: error(529, "Overloaded"),
        lambda: half_written,
        lambda: half_json,
        lambda: web_page,
        lambda: reset,
    ],
    ids=["429-wait", "429", "500", "503", "529", "half-written", "half-json", "html", "reset"],
)
def test_every_passing_fault_is_survived(server, session, ledger, tmp_path, undisturbed, fault):
    expected = undisturbed(tmp_path)
    server.behaviour.fault = lambda number, body: fault() if number % 2 else None
    run = session()
    assert texts(run.run(ASKS)) == expected
    assert run.dispatcher.progress.retries >= len(ASKS)
    assert set(server.drawn.values()) == {1}, "no draw is bought twice"
    assert in_flight(ledger) == []
    assert run.findings == {}


def test_a_storm_of_429_lowers_concurrency_and_passes(server, session):
    server.behaviour.latency_s = 0.01
    server.behaviour.fault = lambda number, body: error(429) if server.under_way > 4 else None
    run = session(max_concurrency=64, start_concurrency=32, max_attempts=3)
    outcomes = run.run(questions(150))
    assert all(outcome.complete for outcome in outcomes.values())
    assert run.dispatcher.limit.allowed < 32


def test_retry_after_is_waited_for(server, session):
    server.behaviour.fault = lambda number, body: (
        error(429, headers={"Retry-After": "1"}) if number == 1 else None
    )
    run = session()
    run.run(questions(1))
    assert run.dispatcher.progress.elapsed_s >= 1.0


def test_a_timeout_is_tried_again(server, session):
    server.behaviour.fault = lambda number, body: silence if number == 1 else None
    run = session(client_options={"timeout_s": 0.3})
    assert run.run(questions(1))[0].complete
    assert len(server.calls) == 2


def test_exhausted_tries_are_reported_and_tried_again_by_the_next_run(server, session):
    server.behaviour.fault = lambda number, body: error(500, "out of order")
    outcome = session(max_attempts=3).run(questions(1))[0]
    assert outcome.problem.kind == "exhausted"
    assert "3 tries" in outcome.problem.message
    assert "out of order" in outcome.problem.message
    server.behaviour.fault = None
    assert session().run(questions(1))[0].complete


def test_a_permanent_error_is_set_aside_with_its_reason_and_not_asked_again(
    server, session, ledger
):
    def refuse_the_third(number, body):
        if "Question 2?" in body["messages"][0]["content"]:
            return error(400, "this question is not allowed")
        return None

    server.behaviour.fault = refuse_the_third
    outcomes = session().run(questions(5, draws=2))
    assert [tag for tag, one in outcomes.items() if one.problem] == [2]
    assert outcomes[2].problem.kind == "permanent"
    assert "not allowed" in outcomes[2].problem.message
    assert "not allowed" in failures(ledger)[0][1]

    calls = len(server.calls)
    again = session().run(questions(5, draws=2))
    assert len(server.calls) == calls, "a second run asks nothing"
    assert again[2].problem == outcomes[2].problem

    server.behaviour.fault = None
    assert session(retry_failures=True).run(questions(5, draws=2))[2].complete


@pytest.mark.parametrize(
    ("status", "message"),
    [(401, "bad key"), (404, "no such model"), (429, "insufficient_quota"), (403, "forbidden")],
)
def test_an_endpoint_that_refuses_everything_stops_the_run(
    server, session, ledger, status, message
):
    server.behaviour.fault = lambda number, body: error(status, message)
    with pytest.raises(EndpointRefusedError, match=message):
        session(start_concurrency=1, max_concurrency=1).run(questions(50))
    assert len(server.calls) == 1
    assert failures(ledger) == [], "it is not the question's fault"


def test_fewer_choices_than_asked_for_are_filled_up(server, session):
    server.behaviour.choices_at_most = 3
    run = session()
    outcomes = run.run(questions(2, draws=8))
    assert [draw.index for draw in outcomes[0].draws] == list(range(8))
    assert [draw.completion.seed for draw in outcomes[0].draws] == list(range(8))
    assert set(server.drawn.values()) == {1}
    assert run.findings["fewer-choices"].count == 4
    assert [call["n"] for call in server.calls[:1]] == [8]


def test_an_endpoint_that_ignores_the_seed_still_gives_independent_draws(server, session):
    server.behaviour.ignore_seed = True
    run = session()
    outcomes = run.run(questions(6, draws=6))
    assert all(outcome.complete for outcome in outcomes.values())
    assert "draws-not-independent" not in run.findings


def test_a_repeated_text_is_reported(server, session):
    server.behaviour.same_text = True
    run = session(client_options={"capabilities": {"native_n": 1}})
    run.run(questions(3, draws=4, temperature=1.0))
    assert "draws are not independent" in run.findings["draws-not-independent"].message


def test_a_repeated_text_is_reported_with_the_help_of_log_probs(server, session):
    server.behaviour.same_text = True
    run = session(client_options={"capabilities": {"native_n": 1}})
    run.run(questions(3, draws=8, temperature=1.0, logprobs=True))
    assert "were to be expected" in run.findings["draws-not-independent"].message


def test_copies_within_one_call_are_reported(server, session):
    server.behaviour.copies_within_call = True
    run = session()
    run.run(questions(5, draws=6, temperature=1.0))
    assert "of one call" in run.findings["draws-not-independent"].message


def test_stored_answers_are_recognised_by_the_id_of_the_call(server, session):
    server.behaviour.same_id = True
    run = session(client_options={"capabilities": {"native_n": 1}})
    run.run(questions(1, draws=3))
    assert "stored answers" in run.findings["draws-not-independent"].message


def test_greedy_draws_may_repeat(server, session):
    run = session()
    run.run(questions(5, draws=6, temperature=0.0))
    assert run.findings == {}


def test_a_model_that_changes_under_its_name_is_reported(server, session):
    server.behaviour.model = "m-2025"
    session().run(questions(2, draws=2))
    server.behaviour.model = "m-2026"
    run = session()
    run.run(questions(2, draws=4))
    assert "m-2025: 4, m-2026: 4" in run.findings["model-changed"].message


@pytest.mark.parametrize(
    ("value", "words"),
    [(-9999.0, "placeholder"), (0.0, "all 6 log-probs are 0"), (0.3, "never above 0")],
)
def test_bad_log_probs_are_refused_but_the_paid_text_is_kept(server, session, value, words):
    server.behaviour.logprob = lambda position: value
    run = session()
    outcome = run.run(questions(1, draws=2, logprobs=True))[0]
    assert all(draw.completion.logprobs is None for draw in outcome.draws)
    assert all(words in draw.completion.logprobs_refused for draw in outcome.draws)
    assert outcome.draws[0].completion.text
    assert words in run.findings["logprobs-refused"].message


def test_a_run_stops_when_all_log_probs_are_refused(server, session):
    server.behaviour.logprob = lambda position: -9999.0
    with pytest.raises(EndpointRefusedError, match="log-probs of all 8 draws"):
        session(start_concurrency=1, max_concurrency=1).run(questions(400, draws=1, logprobs=True))
    assert len(server.calls) < 390
