"""Small studies that tests run against the endpoint of this folder."""

import json
import textwrap
from pathlib import Path

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


def write_study(folder: Path, url: str, *, extra: str = "", tail: str = "", draws: int = 4) -> Path:
    """Write a study folder.

    `extra` goes to the top of study.toml, `tail` to its end, inside the table of the model.
    """
    folder.mkdir(exist_ok=True)
    lines = "".join(json.dumps(row) + "\n" for row in QUESTIONS)
    (folder / "questions.jsonl").write_text(lines)
    (folder / "study.toml").write_text(
        textwrap.dedent(
            """\
            seed = 7
            questions = "questions.jsonl"
            {extra}
            [sampling]
            draws = {draws}

            [prompts]
            style = "short"

            [[models]]
            name = "oracle"
            model = "oracle"
            client = "vllm"
            base_url = "{url}"
            {tail}
            """
        ).format(extra=extra, tail=tail, url=url, draws=draws)
    )
    return folder
