"""Somebody with sampled answers and no confidence finds the way, command by command."""

import json
import shlex

import pytest
from click.testing import CliRunner

from calibrant.cli.main import app
from calibrant.core.errors import UnavailableError
from calibrant.verbs.audit import audit


@pytest.fixture
def sampled(tmp_path):
    """Forty questions with five answers each; a third of the answers is wrong."""
    path = tmp_path / "samples.jsonl"
    rows = [
        {
            "question": f"Which number is {n}?",
            "gold": str(n),
            "answers": [str(n if (n + k) % 3 else n + 100) for k in range(5)],
        }
        for n in range(40)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_column_of_samples_is_named_in_the_refusal(sampled):
    with pytest.raises(UnavailableError) as refused:
        audit(sampled)
    assert "--samples answers --reference gold" in refused.value.hint.shell()


def test_the_step_after_an_audit_of_samples_can_be_taken(sampled, monkeypatch):
    found = audit(sampled, samples="answers", reference="gold", resamples=50).to_dict()
    command = shlex.split(found["next"]["command"])
    monkeypatch.chdir(sampled.parent)
    run = CliRunner().invoke(app, command[1:])
    assert run.exit_code == 0, run.output
    # What was written serves the verbs that the reason names.
    decided = ["decide", "study", "--max-error", "0.5", "--only-method", "sem1"]
    assert CliRunner().invoke(app, decided).exit_code == 0


def test_an_audit_of_samples_opens_with_calibration_over_meanings(sampled):
    found = audit(sampled, samples="answers", reference="gold", resamples=50)
    first, second, *rest = found["claims"]
    assert first["id"].startswith("audit.meanings_")
    assert first["id"].endswith("_confident")
    assert second["id"] == "audit.meanings_miscalibrated"
    # The direction of the same share is told once.
    told = [c for c in rest if c["subject"]["method"] == "sem2"]
    assert told
    assert not {"audit.over_confident", "audit.under_confident"} & {c["id"] for c in told}
    shown = " ".join(str(found).split())
    assert " ".join(first["text"].split()) in shown
    assert found["results"][0]["verdict"]["calibration"]
    assert not any("The confidence of The" in claim["text"] for claim in found["claims"])
