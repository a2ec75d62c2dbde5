"""Write a table with uqlm's own result class: `uqlm_table.py RESULTS_MODULE FILE`.

uqlm as a whole needs torch; the module that lays out its results does not, and is loaded by path.
"""

import importlib.util
import random
import sys


def main(module_path, target):
    spec = importlib.util.spec_from_file_location("uqlm_results", module_path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rng = random.Random(2)
    sampled = [[rng.choice("aaab") for _ in range(5)] for _ in range(30)]
    data = {
        "prompts": [f"question {i}" for i in range(30)],
        "responses": ["a"] * 30,
        "sampled_responses": sampled,
        "exact_match": [row.count("a") / 5 for row in sampled],
        "noncontradiction": [round(0.5 + 0.1 * row.count("a"), 2) for row in sampled],
    }
    frame = module.UQResult({"data": data, "metadata": {}}).to_df()
    frame["response_correct"] = [int(rng.random() < 0.7) for _ in range(30)]
    frame.to_csv(target, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
