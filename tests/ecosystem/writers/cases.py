"""What the writers ask: a sum, what is said, what is right, how sure, and log-probabilities."""

WITH_TOKENS = [
    ("2+2", "4", "4", 0.9, [-0.1]),
    ("3+3", "6", "6", 0.85, [-0.2]),
    ("5+4", "9", "9", 0.8, [-0.25]),
    ("7+6", "14", "13", 0.6, [-0.5, -0.7]),
    ("8+8", "about 17", "16", 0.55, [-0.4, -0.9]),
    ("9+3", "12", "12", None, [-0.3, -0.1]),
]
CASES = [case[:4] for case in WITH_TOKENS]


def tokens_of(text, logs):
    """Return the tokens of a text as OpenAI writes them: as many equal parts as there are logs."""
    size = -(-len(text) // len(logs))
    parts = [text[place * size : (place + 1) * size] for place in range(len(logs))]
    return [{"token": part, "logprob": one} for part, one in zip(parts, logs, strict=True)]
