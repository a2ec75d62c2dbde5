"""Confidence methods in a few plain words, for sentences and headings.

The registry of methods says exactly what each one computes (`calibrant methods`); these words say
what a reader has to picture. They stand here because sentences are made without loading methods.
"""

from __future__ import annotations

from collections.abc import Iterable

METHOD_WORDS = {
    "consistency": "agreement among samples",
    "sem1": "share of the leading meaning",
    "sem2": "share of the leading meaning, on held-out draws",
    "first_run_consistency": "agreement with the first run",
    "sfca": "share of frequent meanings",
    "discrete_semantic_entropy": "spread of meanings, by counts",
    "number_of_classes": "number of meanings",
    "good_turing": "chance of no new meaning",
    "effective_answers": "effective number of meanings",
    "degree_matrix": "similarity among samples",
    "eccentricity": "closeness of samples",
    "kernel_language_entropy": "spread of sample embeddings",
    "eigv": "soft number of meanings",
    "prob_entropy": "spread of sampled texts",
    "norm_prob_entropy": "spread of sampled texts, per token",
    "semantic_entropy": "spread of meanings",
    "sca": "probability of the drawn answers",
    "sca_distinct": "probability of the distinct drawn answers",
    "snca": "probability of the leading meanings",
    "perplexity": "average token probability",
    "sequence_probability": "probability of the whole answer",
    "min_token_probability": "probability of the weakest token",
    "p_true_consistency": "asked repeatedly if true",
    "p_true_consistency_cand": "asked repeatedly if true, beside other answers",
    "p_true_prob": "asked if true",
    "p_true_prob_cand": "asked if true, beside other answers",
    "p_true_ratio": "asked if true, yes against no",
    "verb": "stated confidence",
    "verb_topk": "stated in a list of answers",
    "verb_mean": "stated confidence, mean over samples",
    "consistency_verb": "agreement weighted by stated confidence",
    "consistency_verb_topk": "agreement of stated lists",
    "self_ask": "stated when asked again",
    "self_ask_cand": "stated when asked again beside other answers",
    "first_token_entropy": "certainty about the first token",
    "first_token_probability": "probability of the first token",
    "first_token_margin": "lead of the first token",
    "self_certainty": "sharpness of the first token",
    "option_softmax": "probability among the options",
    "yes_no_ratio": "probability of yes against no",
    "ensemble": "combination of methods",
    "lexical_similarity": "shared words among samples",
    "lexical_similarity_greedy": "words that samples share with the answer",
    "exact_match_greedy": "samples that repeat the answer word for word",
    "consistency_greedy": "samples that mean the same as the answer",
    "claim_support": "claims that samples support, on average",
    "claim_support_min": "support of the weakest claim",
    "luq": "sentences that samples support",
    "mean_token_entropy": "certainty about each token, on average",
    "max_token_entropy": "certainty about the least certain token",
    "probability_margin": "lead of each token, on average",
    "claim_conditioned_probability": "probability that alternatives say the same",
    "cocoa_msp": "answer probability and agreement",
    "cocoa_ppl": "token probability and agreement",
    "cocoa_mte": "token certainty and agreement",
    "semantic_density": "probability near the answer",
    "token_sar": "probability of content words",
    "sent_sar": "probability, shared among similar texts",
    "sar": "probability of content words, shared among similar texts",
    "verified_mass": "draws that the model itself calls true",
    "panel_mean": "what other models give the answer",
    "panel_vote": "other models that call it true",
    "selfcheck_judge": "samples that a judge says support it",
}


def method_words(name: str | None) -> str:
    """Return what a method is, in a few words; nothing for a column of the reader's own.

    Examples
    --------
    >>> method_words("verb"), method_words("my_column")
    ('stated confidence', '')
    """
    return METHOD_WORDS.get(name or "", "")


def method_name(name: str, *, aside: bool = False) -> str:
    """Return a method as a sentence calls it: its name, and what it is where that is known.

    Parameters
    ----------
    name
        Name of the method.
    aside
        Whether the sentence stands in parentheses already.

    Examples
    --------
    >>> method_name("verb"), method_name("verb", aside=True), method_name("my_column")
    ('verb (stated confidence)', 'verb: stated confidence', 'my_column')
    """
    words = method_words(name)
    if not words:
        return name
    return f"{name}: {words}" if aside else f"{name} ({words})"


def method_legend(names: Iterable[str | None]) -> list[str]:
    """Return every known method once with its words, in the order given.

    Examples
    --------
    >>> method_legend(["verb", "perplexity", "my_column", "verb"])
    ['verb: stated confidence', 'perplexity: average token probability']
    """
    known = dict.fromkeys(name for name in names if name and method_words(name))
    return [method_name(name, aside=True) for name in known]
