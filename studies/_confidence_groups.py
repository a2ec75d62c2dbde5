"""Methods by what they take, and the data sets of the study of all methods."""

from __future__ import annotations

BLACK_BOX = (
    "consistency_greedy",
    "exact_match_greedy",
    "lexical_similarity_greedy",
    "lexical_similarity",
    "discrete_semantic_entropy",
    "number_of_classes",
    "degree_matrix",
    "good_turing",
    "sfca",
)
ONE_CALL = (
    "perplexity",
    "sequence_probability",
    "min_token_probability",
    "first_token_probability",
    "first_token_entropy",
    "first_token_margin",
    "self_certainty",
)
BOTH = (
    "sca",
    "sca_distinct",
    "snca",
    "semantic_entropy",
    "prob_entropy",
    "norm_prob_entropy",
    "sent_sar",
    "cocoa_msp",
    "cocoa_ppl",
    "semantic_density",
)
SECOND_TURN = ("p_true_prob", "p_true_ratio")
# Nothing is picked by hand: the ensemble stacks every method, and the ridge weighs them.
STACK = (*BLACK_BOX, *ONE_CALL, *BOTH, *SECOND_TURN)
Areas = dict[str, tuple[float, float, float]]
OPEN = "six models, open questions, one call"
CHOICE = "seven models, multiple choice, one call"
DEEPSEEK = "DeepSeek-V3, 3,000 MACE questions"
LOCAL = "three local models, 860 short questions"
ASKED_AGAIN = (*SECOND_TURN, "p_true_consistency", "p_true_consistency_cand", "self_ask")
GROUPS = {
    **dict.fromkeys(BLACK_BOX, "samples alone"),
    **dict.fromkeys(ONE_CALL, "one call with log-probs"),
    **dict.fromkeys(BOTH, "samples with log-probs"),
    **dict.fromkeys(ASKED_AGAIN, "a second question"),
    "option_softmax": "one call with log-probs",
    "ensemble": "all of them, tuned",
}
