"""A small study that every test of this layer may run."""

import json
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from collect.endpoint import Oracle

QUESTIONS = [
    {
        "question_id": f"math-{low}",
        "text": f"Name one even number from {low} to {low + 5}, both included.",
        "references": [[str(n)] for n in range(low, low + 6) if n % 2 == 0],
        "k": 3,
        "domain": "math",
        "kind": "number",
    }
    for low in range(10, 22, 2)
] + [
    {
        "question_id": f"city-{place}",
        "text": f"Name one capital city of {country}.",
        "references": [[city]],
        "k": 1,
        "domain": "cities",
    }
    for place, (country, city) in enumerate(
        {"Peru": "Lima", "Ecuador": "Quito", "Colombia": "Bogota", "France": "Paris"}.items()
    )
]


@pytest.fixture(scope="session")
def oracle():
    """The endpoint."""
    with Oracle() as server:
        yield server


@pytest.fixture
def make_study(tmp_path: Path, oracle: Oracle) -> Callable[..., Path]:
    """Write a study folder; `extra` is put at the top of study.toml, `tail` at its end."""

    def make(name: str = "study", *, extra: str = "", tail: str = "", url: str = "") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        lines = "".join(json.dumps(row) + "\n" for row in QUESTIONS)
        (folder / "questions.jsonl").write_text(lines)
        (folder / "study.toml").write_text(
            textwrap.dedent(
                """\
                seed = 7
                questions = "questions.jsonl"
                {extra}
                [sampling]
                draws = 4

                [prompts]
                style = "short"

                [[models]]
                name = "oracle"
                client = "vllm"
                base_url = "{url}"
                {tail}
                """
            ).format(extra=extra, tail=tail, url=url or oracle.url)
        )
        return folder

    return make
