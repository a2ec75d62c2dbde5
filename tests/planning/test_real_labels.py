"""Small versions of the studies on real labels."""

import numpy as np

from calibrant.labels import judged_estimates


def test_judge_and_gold_cover_the_human_value(shared_data):
    from studies._planning_judge import human_table

    frame = human_table(limit=160)
    p, human, judge = (frame[c].to_numpy() for c in ("confidence", "human_correct", "judge"))
    rng = np.random.default_rng(0)
    hits = {"accuracy": 0, "gap": 0}
    ratio = {"accuracy": [], "gap": []}
    for _ in range(60):
        known = np.full(human.size, np.nan)
        chosen = rng.choice(human.size, 100, replace=False)
        known[chosen] = human[chosen]
        found = judged_estimates(p, known, judge)
        for name, value in (("accuracy", human.mean()), ("gap", (p - human).mean())):
            part = found[name]["combined"]
            hits[name] += part.low <= value <= part.high
            ratio[name].append(found[name]["width_ratio"])
    assert min(hits.values()) >= 52  # 60 draws at a nominal 95 %
    assert np.mean(ratio["accuracy"]) < 0.8
    assert np.mean(ratio["gap"]) < 0.9


def test_replay_of_hidden_labels(shared_data, monkeypatch):
    from studies import _planning_replay as study

    monkeypatch.setattr(study, "BUDGETS", (200,))
    mmlu, pro = study.mmlu_pools(), study.mmlu_pro_pools()
    pools = {name: mmlu[name] for name in ("MMLU gpt-4-turbo", "MMLU Yi-34b")}
    pools |= {name: pro[name] for name in ("MMLU-Pro Qwen3-8B", "MMLU-Pro gpt-4o-2024-08-06")}
    raw = study.replay(pools, 20, recalibrate=False)
    flat = study.replay({"MMLU Yi-34b": mmlu["MMLU Yi-34b"]}, 120, recalibrate=True)

    def error(frame, strategy, part=""):
        rows = frame.filter((frame["strategy"] == strategy) & frame["pool"].str.starts_with(part))
        return float(rows["error"].mean())

    plain = error(raw, "random, plug-in")
    assert error(raw, "stratified, corrected") < 1.15 * plain
    assert error(raw, study.GRID) > 2 * plain  # the published strategy on saturated confidences
    peers = error(raw, "stratified, corrected, with peers", "MMLU-Pro")
    assert peers < 0.8 * error(raw, "random, plug-in", "MMLU-Pro")
    assert error(flat, "stratified, corrected") < 0.9 * error(flat, "random, plug-in")
