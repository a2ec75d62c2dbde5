"""Every command, as tests go through them."""

from calibrant.cli.catalog import VERBS, verb_function
from calibrant.cli.command import verb_command


def commands():
    """Every command with its words on the command line: 'audit', 'label next', .."""
    for words in VERBS:
        yield words, verb_command(words, verb_function(words))


def parameters(command):
    """Every declared option of a command: of the verb, and of its output."""
    return {**command.verb.parameters, **command.outputs}
