"""Every command, as tests go through them."""

from calibrant.cli import VERBS
from calibrant.cli.command import VerbCommand


def commands():
    """Every command with its words on the command line: 'audit', 'label next', .."""
    for words in VERBS:
        yield words, VerbCommand(words)


def parameters(command):
    """Every declared option of a command: of the verb, and of its output."""
    return {**command.verb.parameters, **command.outputs}
