"""Texts that a hostile model might answer, and a document that carries them everywhere."""

import functools

import numpy as np

import calibrant as cal

MARK = "window.hacked = true"
TEXTS = [
    f"<script>{MARK}</script>",
    f"</script><script>{MARK}</script>",
    f"<img src=x onerror='{MARK}'>",
    f"<svg onload='{MARK}'>",
    f'"><iframe src="javascript:{MARK}"></iframe>',
    f"javascript:{MARK}",
    f"{{{{constructor.constructor('{MARK}')()}}}}",
    "<!--<script>",
    "]]>",
    "\u202eright to left\u202c",
    "x" * 5_000,
    "&lt;b&gt;",
    "\u0000\u0007",
]


@functools.cache
def hostile_document():
    """An audit whose model, method and group names are hostile, made once."""
    rng = np.random.default_rng(0)
    rows = {"question_id": [], "model": [], "confidence": [], "correct": [], "topic": []}
    for place, text in enumerate(TEXTS):
        for i in range(40):
            rows["question_id"].append(f"{place}-{i}")
            rows["model"].append(text)
            rows["topic"].append(text)
            rows["confidence"].append(rng.random())
            rows["correct"].append(float(rng.random() < 0.5))
    return cal.audit(rows, by=["topic"], resamples=50).to_dict()


def hostile_questions():
    return [
        {
            "id": str(place),
            "text": text,
            "answers": [{"model": text, "answer": text, "draws": 3, "correct": True}],
            "scores": text,
        }
        for place, text in enumerate(TEXTS)
    ]
