"""Write ``fixtures/ragas.csv`` with ragas itself (0.4): metrics by rule, no model.

The column `confidence` is what a user adds: ragas has none.
"""

import sys

from cases import CASES
from ragas import EvaluationDataset, evaluate
from ragas.metrics import ExactMatch, NonLLMStringSimilarity

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
