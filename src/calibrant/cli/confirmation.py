"""The question that a command asks before it spends money."""

from __future__ import annotations

import sys


def agreed(question: str) -> bool:
    """Ask on the terminal whether to go on; where there is no terminal, nobody agrees.

    Parameters
    ----------
    question
        What is about to happen, and whether it should.
    """
    # Not sys.stderr: a progress bar holds back what does not end with a line.
    terminal = sys.__stderr__
    if terminal is None or not (sys.stdin.isatty() and terminal.isatty()):
        return False
    terminal.write(f"{question} [y/N] ")
    terminal.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
