"""Runs a study in a child process on every line of its input, and prints the child's number.

The modules are imported once; a child starts in milliseconds and can be killed in the middle. On
a line ``wait`` it waits for the last child and prints how that ended.
"""

import os
import sys

from calibrant.verbs.run import run


def main() -> None:
    child = 0
    for line in sys.stdin:
        if line.strip() == "wait":
            _, status = os.waitpid(child, 0)
            answer = status
        else:
            child = os.fork()
            if child == 0:
                run(line.strip())
                os._exit(0)
            answer = child
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
