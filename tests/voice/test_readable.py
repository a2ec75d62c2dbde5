"""Pages, help and messages read easily: short sentences, and none of the retired phrases."""

import re

import pytest
from prose import length, messages, sentences, sentences_of_page

from calibrant.cli import GROUPS, VERBS, verb_function
from calibrant.cli.command import OUTPUTS
from calibrant.core.verb import declaration
from support import ROOT

AVERAGE, LONGEST = 22, 35
# Written by scripts from data; their sentences are those of the scripts.
GENERATED = ("studies/", "benchmarks/", "simulations/", "claims.md")
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(
        path
        for path in (ROOT / "docs").rglob("*.md")
        if not str(path.relative_to(ROOT / "docs")).startswith(GENERATED)
    ),
]
RETIRED = re.compile(
    r"no evidence\b|cannot be told apart|not told apart|and so a flattered|know little here"
    r"|however a confidence looks|no order is told|survive them|every method of the field"
    r"|no claim below|gives? the same bytes|a study has a study\.toml|fewer than the split needs"
    r"|can show at all|no finer than this|is no proof of|\bwhen to defer\b",
    re.IGNORECASE,
)
# Names of people and places, not outcomes of a test.
ALLOWED = ("Some names cannot be told apart by their words",)


def help_texts():
    for words, entry in VERBS.items():
        yield f"{words}: summary", entry.summary
        for name, parameter in declaration(verb_function(words)).parameters.items():
            yield f"{words}: {name}", parameter.option.help
    for name, text in GROUPS.items():
        yield name, text
    for name, parameter in OUTPUTS.items():
        yield name, parameter.option.help


def too_long(found):
    return [(length(text), where, text) for where, text in found if length(text) > LONGEST]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_have_short_sentences(page):
    found = sentences_of_page(page.read_text(encoding="utf-8"))
    assert too_long((page.name, sentence) for sentence in found) == []
    words = sum(map(length, found))
    assert words <= AVERAGE * max(1, len(found)), words / len(found)


@pytest.mark.parametrize("texts", [help_texts, messages])
def test_help_and_messages_have_short_sentences(texts):
    found = [(where, part) for where, text in texts() for part in sentences(text)]
    assert len(found) > 100
    assert too_long(found) == []
    assert sum(length(text) for _, text in found) <= AVERAGE * len(found)


def test_retired_phrases_are_gone():
    texts = [(page.name, page.read_text(encoding="utf-8")) for page in PAGES]
    for where, text in [*texts, *help_texts(), *messages()]:
        flat = " ".join(text.split())
        for allowed in ALLOWED:
            flat = flat.replace(allowed, "")
        found = RETIRED.search(flat)
        assert found is None, f"{where}: {found and found[0]}"


def test_help_says_what_an_option_does():
    for where, text in help_texts():
        assert text[0].isupper() or text[0] in "`'0123456789", f"{where}: {text}"
        assert text.rstrip().endswith((".", "?")), f"{where}: {text}"


def test_the_rules_see_what_they_should():
    assert len(sentences("It is short. calibrant says so. It has e.g. three parts.")) == 3
    assert sentences_of_page("# A\n\nOne two.\n\n```\nnot this one\n```\n\n| a | b |\n") == [
        "One two."
    ]
    assert RETIRED.search("so there is no evidence of it")
    assert too_long([("x", " ".join(["word"] * 36))])
