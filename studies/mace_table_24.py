"""Table 24 of MACE, cell by cell: DeepSeek-V3 on the three domains whose answers are public."""

from __future__ import annotations

import numpy as np

from calibrant.bench.evaluate import bench_evaluate
from studies._page import DATA, StudyPage

# As printed: mean confidence in percent with 1, 2, 4 and 6 right answers, over six domains.
PRINTED = {
    "semantic_entropy_conf": (80.9, 78.6, 76.2, 72.9),
    "verb_conf": (85.3, 85.5, 85.8, 86.0),
    "topk_conf": (63.5, 57.5, 52.7, 50.5),
    "consistency_conf": (81.1, 79.1, 76.7, 73.2),
    "consistency_verb_conf": (69.0, 65.9, 60.6, 55.6),
    "consistency_topk_conf": (63.4, 58.5, 53.6, 49.0),
    "p_true_conf": (64.3, 64.6, 64.7, 66.2),
    "p_true_cand_conf": (82.4, 81.5, 82.5, 80.5),
    "self_ask_conf": (76.5, 72.8, 69.8, 71.2),
    "self_ask_cand_conf": (83.8, 81.3, 80.8, 78.7),
}


def main() -> None:
    page = StudyPage("mace_table_24", "Table 24 of MACE, cell by cell")
    result = bench_evaluate(
        DATA / "mace" / "deepseek_v3.parquet",
        confidence=",".join(PRINTED),
        correct="greedy_correct",
        reference="consistency_conf",
        on_invalid="drop",
        resamples=100,
    )
    rows, ours, theirs = [], [], []
    for entry in result["results"]:
        means = [100 * part["confidence"]["value"] for part in entry["by_k"]]
        printed = PRINTED[entry["method"]]
        ours.append(means)
        theirs.append(printed)
        change, said = means[-1] - means[0], printed[-1] - printed[0]
        rows.append(
            [
                entry["method"],
                *(f"{mine:.1f} / {paper:.1f}" for mine, paper in zip(means, printed, strict=True)),
                f"{change:+.1f} / {said:+.1f}",
            ]
        )
    one, two = np.array(ours), np.array(theirs)
    turns = (one[:, -1] > one[:, 0]) == (two[:, -1] > two[:, 0])
    page.text(
        "The paper prints means over six domains; answers of three are public (award, language, "
        "math). So no cell has to agree. The confidences are those of its authors, from "
        "`bench evaluate`; a cell is 'here / printed', in percent."
    )
    page.text(
        f"{one.size} cells. Over them the correlation of the two is "
        f"{np.corrcoef(one.ravel(), two.ravel())[0, 1]:.2f}; the mean difference is "
        f"{(one - two).mean():+.1f} points, {np.abs(one - two).mean():.1f} points without its "
        f"sign. {int(turns.sum())} of {turns.size} methods move the same way from 1 to 6 right "
        "answers."
    )
    page.table(["method", "1 right", "2", "4", "6", "change from 1 to 6"], rows)
    page.write()
