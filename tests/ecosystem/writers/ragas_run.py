"""Write ``fixtures/ragas.csv`` with ragas itself (0.4): metrics by rule, no model.

The column `confidence` is what a user adds: ragas has none.
"""

import sys

from ragas import EvaluationDataset, evaluate
from ragas.metrics import ExactMatch, NonLLMStringSimilarity

CASES = [
    ("2+2", "4", "4", 0.9),
    ("3+3", "6", "6", 0.85),
    ("5+4", "9", "9", 0.8),
    ("7+6", "14", "13", 0.6),
    ("8+8", "about 17", "16", 0.55),
    ("9+3", "12", "12", None),
]

rows = [
    {"user_input": asked, "response": said, "reference": right, "retrieved_contexts": ["sums"]}
    for asked, said, right, _ in CASES
]
found = evaluate(
    EvaluationDataset.from_list(rows),
    metrics=[ExactMatch(), NonLLMStringSimilarity()],
    show_progress=False,
).to_pandas()
found["confidence"] = [sure for *_, sure in CASES]
found.to_csv(sys.argv[1], index=False)
