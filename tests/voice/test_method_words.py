"""Every confidence method has plain words of its own, short enough for a heading."""

from calibrant.answers.confidence import METHODS
from calibrant.core.names import METHOD_WORDS, method_legend
from calibrant.report.names import without_shared_start


def test_every_method_has_words_and_no_other_name_has():
    assert set(METHOD_WORDS) == set(METHODS)


def test_words_are_few_and_tell_methods_apart():
    assert len(set(METHOD_WORDS.values())) == len(METHOD_WORDS)
    for name, words in METHOD_WORDS.items():
        assert 1 < len(words.split()) <= 9, name
        assert "_" not in words
        assert name not in words.split()


def test_a_column_of_the_readers_own_is_not_explained():
    assert method_legend(["logit_confidence", None]) == []


def test_names_lose_only_what_all_of_them_share():
    assert without_shared_start(["a-b-1", "a-b-2"]) == {"a-b-1": "…1", "a-b-2": "…2"}
    assert without_shared_start(["model", "model-2"]) == {"model": "model", "model-2": "model-2"}
    assert without_shared_start(["org/x", "org/x"]) == {"org/x": "org/x"}
