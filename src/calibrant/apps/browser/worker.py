"""A process that works for the app: verbs are called here, so that a call can be stopped."""

import threading
from collections.abc import Mapping
from typing import Any

import orjson

import calibrant
import calibrant.verbs.audit_document
from calibrant.core.document import dump_document
from calibrant.core.errors import CalibrantError, InputError
from calibrant.data.streams.engines import Helper, NotDoneError
from calibrant.report.result import Result


class Stopped(Exception):
    """The call was stopped before it was done."""


class Worker:
    """Calls verbs one at a time in a process of its own, which is started when needed."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._helper = Helper(_called)

    def start(self) -> None:
        """Start the process ahead of its first call: loading the libraries takes a while."""
        self._helper.start()

    def call(self, verb: str, data: Any, settings: Mapping[str, object]) -> Result:
        """Call a verb and return its result; what it refuses is an `InputError`."""
        with self._turn:
            try:
                document, error = self._helper.ask((verb, data, settings))
            except NotDoneError:
                self.stop()
                raise Stopped from None
        if error:
            raise InputError(error)
        return Result.of_plain(orjson.loads(document))

    def stop(self) -> None:
        """End the process, and with it the call that it works on."""
        self._helper.end()
        self._helper = Helper(_called)


def _called(request: tuple[str, Any, Mapping[str, object]]) -> tuple[bytes, str]:
    """Return the document of a verb as JSON, or what the verb refuses."""
    verb, data, settings = request
    try:
        result = getattr(calibrant, verb.replace(" ", "_"))(data, **settings)
    except CalibrantError as error:
        return b"", str(error)
    return dump_document(result.to_dict()), ""
