"""What the name of a column says about its role: token by token, each with a weight."""

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache

from msgspec import Struct

from calibrant.core.names import data_beside

WORDS = data_beside(__file__, "words.toml")
"""Words in the names of columns and in cells, with what they mean."""


_WEIGHTS: dict[str, dict[str, float]] = {}
for _role, _words_of in WORDS["roles"].items():
    # The strongest stand first, and count.
    for _weight, _words in reversed(_words_of.items()):
        for _word in _words.split():
            _WEIGHTS.setdefault(_word, {})[_role] = float(_weight)
_STEMS: dict[str, str] = WORDS["stems"]
_KINDS = {kind: frozenset(words.split()) for kind, words in WORDS["kinds"].items()}
_CALLED = {use: frozenset(words.split()) for use, words in WORDS["called"].items()}
_BORDERS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
_COMPOUNDS = [
    rule | {"words": [frozenset(group.split()) for group in rule["words"]]}
    for rule in WORDS["compounds"]
]
"""What words say together: where one of each group stands in a name, its weights are settled."""
_OWN = frozenset(WORDS["own"]["answer"].split())
_NAMING = {"name", "id", "short"}
_TELLING = frozenset({"toxic", "toxicity", "entailment", "supported"})
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
    if parts & _OWN and result.get("gold", 0.0) <= 1:
        # An answer that was predicted or extracted is the model's own.
        result["gold"] = 0.0
    _settle_compounds(result, parts, words)
    if last.get("other", 0.0) >= 3:
        # Whether a format or a schema was correct says nothing of the answer.
        result["right"] = 0.0
    if re.search(r"(^|_)p\d+($|_)", leaf.lower()):
        result["other"] = 3.0
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


def _settle_compounds(result: dict[str, float], parts: set[str], words: Sequence[str]) -> None:
    place = {
        "first": {*words[:1]},
        "last": {*words[-1:]},
        "only": parts if len(words) < 2 else set(),
    }
    for rule in _COMPOUNDS:
        first, *others = rule["words"]
        if not (first & place.get(rule.get("place", ""), parts) and all(parts & o for o in others)):
            continue
        for role, weight in rule["weights"].items():
            bound = {"least": max, "most": min}.get(rule.get("bound", ""))
            result[role] = bound(result.get(role, 0.0), weight) if bound else weight


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
    left, right = (
        [word for word in words if word in _TELLING or word not in _WEIGHTS]
        for words in (left, right)
    )
    return any(
        len(a) >= 4 and len(b) >= 4 and (a.startswith(b[:5]) or b.startswith(a[:5]))
        for a in left
        for b in right
    )
