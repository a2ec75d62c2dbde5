"""A process that works for the app: verbs are called here, so that a call can be stopped."""

import contextlib
import subprocess
import sys
import threading
from typing import Any

import orjson

from calibrant.core.document import dump_document
from calibrant.core.errors import CalibrantError, InputError


class Stopped(Exception):
    """The call was stopped before it was done."""


class Worker:
    """Calls verbs one at a time in a process of its own, which is started when needed."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process ahead of its first call: loading the libraries takes a while."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "calibrant.workflows.app.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )

    def call(self, verb: str, data: Any, settings: dict[str, Any]) -> dict[str, Any]:
        """Call a verb and return its document; what it refuses is an `InputError`."""
        with self._turn:
            self.start()
            process = self._process
            assert process is not None
            assert process.stdin is not None
            assert process.stdout is not None
            asked = orjson.dumps({"verb": verb, "data": data, "settings": settings})
            try:
                process.stdin.write(asked + b"\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except (OSError, ValueError):
                # It was stopped, and its lines are closed.
                line = b""
        if not line:
            raise Stopped
        told: dict[str, Any] = orjson.loads(line)
        if "error" in told:
            raise InputError(told["error"])
        document: dict[str, Any] = told["document"]
        return document

    def stop(self) -> None:
        """End the process, and with it the call that it works on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for line in (self._process.stdin, self._process.stdout):
                # What was not sent any more cannot be flushed.
                with contextlib.suppress(OSError):
                    assert line is not None
                    line.close()


def _answer(request: dict[str, Any]) -> bytes:
    import calibrant

    verb = getattr(calibrant, request["verb"].replace(" ", "_"))
    try:
        result = verb(request["data"], **request["settings"])
    except CalibrantError as error:
        return orjson.dumps({"error": str(error)})
    return orjson.dumps({"document": orjson.Fragment(dump_document(result.to_dict()))})


def main() -> None:
    """Answer calls until the app closes the line."""
    replies, sys.stdout = sys.stdout.buffer, sys.stderr
    # Loaded ahead: the first call should not wait for it.
    import calibrant.verbs.audit_document  # noqa: F401

    for line in sys.stdin.buffer:
        replies.write(b"".join(_answer(orjson.loads(line)).split(b"\n")) + b"\n")
        replies.flush()


if __name__ == "__main__":
    main()
