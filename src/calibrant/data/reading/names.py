"""What the name of a column says about its role: token by token, each with a weight."""

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache

from msgspec import Struct

from calibrant.core.names import data_beside

WORDS = data_beside(__file__, "words.toml")
"""Words in the names of columns and in cells, with what they mean."""


def _weights() -> dict[str, dict[str, float]]:
    by_token: dict[str, dict[str, float]] = {}
    for role, words_of in WORDS["roles"].items():
        for weight, words in words_of.items():
            for word in words.split():
                known_names = by_token.setdefault(word, {})
                known_names[role] = max(float(weight), known_names.get(role, 0.0))
    return by_token


_WEIGHTS = _weights()
_STEMS: dict[str, str] = WORDS["stems"]
_KINDS = {kind: frozenset(words.split()) for kind, words in WORDS["kinds"].items()}
_CALLED = {use: frozenset(words.split()) for use, words in WORDS["called"].items()}
_BORDERS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
_RIGHT = {"correct", "true", "right", "expected"}
_ANSWERS = {"answer", "answers", "letter", "label", "option", "choice", "text", "class", "code"}
_MADE = {"predicted", "prediction", "pred", "extracted", "parsed", "selected", "chosen"}
_MADE |= {"generated", "self", "logprob"}
_CHANCES = {"p", "prob", "probability"}
_FAILURES = {"incorrect", "wrong", "error", "failure", "hallucination", "hallucinated"}
_NAMING = {"name", "id", "short"}
_MODIFIER, _PARENT = 0.7, 0.4


class NameRoles(Struct, frozen=True):
    """How strongly a name speaks for each role, from 0 to about 3."""

    confidence: float = 0.0
    logprob: float = 0.0
    uncertainty: float = 0.0
    right: float = 0.0
    wrong: float = 0.0
    answer: float = 0.0
    gold: float = 0.0
    text: float = 0.0
    model: float = 0.0
    other: float = 0.0
    names_answer: bool = False
    somebody: bool = False
    decision: bool = False
    measure: bool = False

    @property
    def stated(self) -> float:
        """How strongly it speaks for any kind of confidence."""
        return max(self.confidence, self.uncertainty, self.logprob) - self.other

    @property
    def known(self) -> bool:
        """Whether it speaks for anything but models."""
        weights = (self.stated + self.other, self.graded, self.answer, self.gold, self.text)
        return max(*weights, self.other) > 0 or self.somebody or self.decision

    @property
    def graded(self) -> float:
        """How strongly it speaks for an outcome, right or wrong."""
        return max(self.right, self.wrong)


def tokens(name: str) -> list[str]:
    """Return the words of a name in small letters, without accents.

    Examples
    --------
    >>> tokens("isCorrect_GPT4 (Modèle)")
    ['is', 'correct', 'gpt', '4', 'modele']
    """
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return [word for word in re.split(r"[\W_]+", _BORDERS.sub(" ", plain).lower()) if word]


def bare(name: str) -> str:
    """Return a name without case, accents and signs."""
    plain = unicodedata.normalize("NFKD", name.lower())
    return "".join(letter for letter in plain if letter.isalnum())


def columns_called(use: str, names: Sequence[str]) -> list[str]:
    """Return the columns whose whole name says what they hold.

    Examples
    --------
    >>> columns_called("question_id", ["Item ID", "qid", "answer"])
    ['Item ID', 'qid']
    """
    return [name for name in names if bare(name) in _CALLED[use]]


def model_columns(names: Sequence[str]) -> list[str]:
    """Return the columns that are called models, or the name or id of one; not those who judge.

    Examples
    --------
    >>> model_columns(["Modèle", "run.llm_name", "judge model", "model_confidence"])
    ['Modèle', 'run.llm_name']
    """
    matches = []
    for name in names:
        words = [word for word in tokens(name.split(".")[-1]) if word not in _NAMING]
        words = words or tokens(name)
        last = token_weights(words[-1]).get("model", 0) if words else 0
        if last and not any(token_weights(word).get("other") for word in words):
            matches += [] if _KINDS["somebody"] & {*words} else [name]
    return matches


def token_weights(token: str) -> dict[str, float]:
    """Return the weight of a word by role, told by its stem where the word is not known."""
    stem = (word for start, word in _STEMS.items() if token.startswith(start))
    return _WEIGHTS[token] if token in _WEIGHTS else _WEIGHTS.get(next(stem, ""), {})


@lru_cache(maxsize=4096)
def name_roles(name: str) -> NameRoles:
    """Weigh a name: its last word in full, words before it less, fields above it least.

    Examples
    --------
    >>> name_roles("verbalized_confidence").confidence, name_roles("is_error").wrong
    (3.0, 3.0)
    >>> name_roles("correct_answer").gold, name_roles("correct_answer").right
    (3.0, 0.0)
    """
    *parents, leaf = re.sub(r"\s*\[\d+\]$", "", name).split(".")
    words = tokens(re.sub(r"\(.*?\)", " ", leaf))
    words = [word for word in words if not word.isdigit()] or tokens(leaf)
    weighed = [(word, _PARENT) for parent in parents for word in tokens(parent)]
    weighed += [(word, 1.0 if word is words[-1] else _MODIFIER) for word in words]
    matches: dict[str, float] = {}
    for word, factor in weighed:
        for role, weight in token_weights(word).items():
            full = role == "wrong" and factor == _MODIFIER
            matches[role] = max(matches.get(role, 0.0), weight if full else weight * factor)
    return _settled(matches, words, leaf)


def _settled(result: dict[str, float], words: list[str], leaf: str) -> NameRoles:
    """Settle what single words cannot say: compounds, negations, whose verdict it is."""
    parts, last = {*words}, token_weights(words[-1]) if words else {}
    answers = any(token_weights(word).get("answer", 0) >= 2 for word in words)
    names_answer = answers and ("answer" in last or not {*last} & {"right", "confidence", "wrong"})
    _settle_compounds(result, parts, words, leaf)
    if parts & {"not", "non", "no"} and result.get("right"):
        result["wrong"] = result.pop("right")
    if result.get("uncertainty"):
        result["confidence"] = 0.0
    if result.get("wrong", 0.0) >= 2:
        result["right"] = 0.0
    weights = {role: result.get(role, 0.0) for role in NameRoles.__struct_fields__[:10]}
    return NameRoles(
        **weights,
        names_answer=names_answer,
        somebody=bool(parts & _KINDS["somebody"]),
        decision=bool(parts & _KINDS["decision"]),
        measure=bool(parts & _KINDS["measure"]),
    )


def _settle_compounds(
    result: dict[str, float], parts: set[str], words: list[str], leaf: str
) -> None:
    if parts & {"judge", "grader", "human"} and parts & {"score", "rating", "grade"}:
        result["right"] = max(result.get("right", 0.0), 2.0)
    if {*words} & _MADE and result.get("gold", 0.0) <= 1:
        # An answer that was predicted or extracted is the model's own.
        result["gold"] = 0.0
    if words and token_weights(words[-1]).get("other", 0.0) >= 3:
        # Whether a format or a schema was correct says nothing of the answer.
        result["right"] = 0.0
    if words == ["ok"]:
        result["right"] = 3.0
    if words[:1] in (["has"], ["contains"], ["hit"]) and "answer" in parts:
        result |= {"right": 2.0, "answer": 0.0, "gold": 0.0}
    if parts & _KINDS["metric"]:
        result["other"] = 3.0
    if parts & _RIGHT and parts & (_ANSWERS | {"position", "index"}):
        result |= {"gold": 3.0, "right": 0.0}
    _settle_chances(result, parts)
    if parts & {"confidence", "conf"}:
        _settle_confidence(result, parts)
    top = parts & {"max", "top"} and parts & {"prob", "probability", "softmax", "logprob"}
    norm = parts & {"normalized", "normalised", "norm"} and "length" in parts
    # Of tokens, or of the first of them: a kind of entropy, not a number of tokens.
    kind = {*words[-1:]} & {"entropy", "logprob", "logprobs"} and parts & {"token", "tokens"}
    if top or norm or kind:
        result["other"] = 0.0
    if re.search(r"(^|_)p\d+($|_)", leaf.lower()):
        result["other"] = 3.0


def _settle_chances(result: dict[str, float], parts: set[str]) -> None:
    """Settle what a probability is of: of a right answer a confidence, of a wrong one a doubt."""
    if parts & _CHANCES and parts & _FAILURES:
        result |= {"uncertainty": 3.0, "wrong": 0.0}
    elif parts & (_RIGHT - {"expected"}) and parts & _CHANCES:
        result |= {"confidence": 3.0, "right": 0.0}


def _settle_confidence(result: dict[str, float], parts: set[str]) -> None:
    """Settle what stands beside the word confidence: its mean is one still, its text is not."""
    result["right"] = 0.0
    if parts & {"avg", "mean", "max", "top", "parsed", "token"}:
        result["other"] = min(result.get("other", 0.0), 0.5)
    if parts & {"letter", "word", "text", "raw"}:
        result["other"] = 2.0


def outcome_columns(names: Sequence[str], asked: str | None = None) -> list[str]:
    """Return the columns of outcomes by name alone: those asked for, or those called like one.

    Examples
    --------
    >>> outcome_columns(["A conf", "A ok", "B conf", "B ok"]), outcome_columns(["p", "correct"])
    (['A ok', 'B ok'], ['correct'])
    """
    if asked is not None:
        return [asked] if asked in names else [part.strip() for part in asked.split(",")]
    if "correct" in names:
        return ["correct"]
    called = [(name_roles(name).graded, name) for name in names if not name_roles(name).other]
    best = max((weight for weight, _ in called), default=0.0)
    return [name for weight, name in called if weight == best >= 1 and not name_roles(name).gold]


def share_a_stem(left: Collection[str], right: Collection[str]) -> bool:
    """Return whether two names share a word that says no role: `toxicity_score` and `toxic`."""
    left, right = ([word for word in words if _tells(word)] for words in (left, right))
    return any(
        len(a) >= 4 and len(b) >= 4 and (a.startswith(b[:5]) or b.startswith(a[:5]))
        for a in left
        for b in right
    )


def _tells(word: str) -> bool:
    return word not in _WEIGHTS or word in ("toxic", "toxicity", "entailment", "supported")
