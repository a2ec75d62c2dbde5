"""Write ``fixtures/simple_evals.json`` and ``.html`` with simple-evals (nvidia-simple-evals 26.3).

Its BrowseComp asks for a confidence in the reply; the model and the grader answer by a rule. One
reply states none, and the grader says 100 for it, as its prompt tells it to.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from simple_evals import common
from simple_evals.evals import browsecomp_eval

CASES = [
    ("2+2", "4", "4", "90%"),
    ("3+3", "6", "6", "85%"),
    ("5+4", "9", "9", "80%"),
    ("7+6", "14", "13", "60%"),
    ("8+8 < 20, what is 8+8?", "17", "16", "55%"),
    ("9+3", "12", "12", None),
]


class Model:
    def _pack_message(self, role, content):
        return {"role": role, "content": content}

    async def __call__(self, messages, **_):
        asked = messages[-1]["content"].partition("\n")[0]
        said, sure = next((said, sure) for text, said, _, sure in CASES if text == asked)
        stated = f"\nConfidence: {sure}" if sure else ""
        return f"Explanation: counted\nExact Answer: {said}{stated}"


class Sums(browsecomp_eval.BrowseCompEval):
    """BrowseComp on other questions, judged without a model."""

    def __init__(self, folder):
        self.examples = [{"problem": asked, "answer": right} for asked, _, right, _ in CASES]
        self.num_threads, self.n_repeats, self.cache_dir = 1, 1, str(Path(folder) / "cache")
        self.seed_generator = type("Seeds", (), {"get_seed": lambda *_: 0})()

    async def grade_sample(self, question, correct_answer, response):
        return "yes" if f"Exact Answer: {correct_answer}\n" in f"{response}\n" else "no"


browsecomp_eval.decrypt = lambda text, _: text
with tempfile.TemporaryDirectory() as folder:
    result = asyncio.run(Sums(folder)(Model()))
target = Path(sys.argv[1])
kept = {"score": result.score, "metrics": result.metrics, "htmls": result.htmls}
target.write_text(json.dumps({**kept, "convos": result.convos}, indent=2, default=float))
target.with_suffix(".html").write_text(common.make_report(result))
