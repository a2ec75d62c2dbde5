"""A command at a terminal: what it shows, what is typed, and how it ends."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

# Ctrl-C reaches a command only through the terminal that controls it.
_CONTROL = (
    "import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "signal.signal(signal.SIGINT, signal.SIG_DFL); "  # a test may run in the background
    "os.execv(sys.argv[1], sys.argv[1:])"
)
CTRL_C, CTRL_D = "\x03", "\x04"
CURSOR_HIDDEN, CURSOR_SHOWN = "\x1b[?25l", "\x1b[?25h"


class Terminal:
    """``with Terminal("run", study) as at: at.until("Send them?"); at.type(CTRL_C)``."""

    def __init__(self, *words: object, cwd: Path | None = None, **environment: str) -> None:
        self.shown = ""
        self._words = [sys.executable, "-m", "calibrant", *map(str, words)]
        self._cwd = cwd
        self._environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", **environment}

    def __enter__(self) -> Self:
        self._screen, keyboard = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CONTROL, *self._words],
            stdin=keyboard,
            stdout=keyboard,
            stderr=keyboard,
            cwd=self._cwd,
            env=self._environment,
            start_new_session=True,
        )
        os.close(keyboard)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._screen)

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self._screen, text.encode())

    def end(self, how: str) -> int:
        """Press Ctrl-C or send SIGTERM, and return the exit status."""
        if how == "ctrl-c":
            self.type(CTRL_C)
        else:
            self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def until(self, text: str, seconds: float = 60) -> None:
        """Wait until the terminal has shown a text."""
        deadline = time.monotonic() + seconds
        while text not in self.shown:
            assert time.monotonic() < deadline, f"never shown: {text!r}, but {self.shown!r}"
            assert self._read(0.2) or self.process.poll() is None, self.shown

    def wait(self, seconds: float = 30) -> int:
        """Return the exit status; what is shown until then is read."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"does not end: {self.shown!r}"
            self._read(0.02)
        while self._read(0.02):
            pass
        return self.process.returncode

    @property
    def cursor_is_shown(self) -> bool:
        """Whether the cursor is shown by now."""
        return self.shown.rfind(CURSOR_SHOWN) >= self.shown.rfind(CURSOR_HIDDEN)

    def _read(self, seconds: float) -> bool:
        if not select.select([self._screen], [], [], seconds)[0]:
            return False
        try:
            found = os.read(self._screen, 65_536)
        except OSError:  # nobody holds the other end any more
            return False
        self.shown += found.decode("utf-8", "replace")
        return bool(found)
