"""The entry point: verbs are imported when they are called, so that `--help` stays quick."""

import errno
import gc
import io
import os
import signal
import sys
from typing import Any

import click

from calibrant.cli import GROUPS, SETTINGS, VERBS
from calibrant.core.errors import CalibrantError, InputError, did_you_mean, printable
from calibrant.core.version import __version__

_BROKEN_PIPE = 141
_INTERRUPTED = 130
# A full disk, a used-up quota.
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


class VerbGroup(click.Group):
    """Verbs, or the parts of one: imported when they are called."""

    def __init__(self, prefix: str, help: str) -> None:
        super().__init__(
            prefix or "calibrant", help=help, no_args_is_help=True, context_settings=SETTINGS
        )
        self.prefix = prefix

    @property
    def summaries(self) -> dict[str, str]:
        """What each verb is for, in the order of a user's journey."""
        skipped = len(self.prefix.split())
        by_word: dict[str, str] = {}
        for words, entry in VERBS.items():
            parts = words.split()
            if parts[:skipped] == self.prefix.split():
                is_group = not skipped and len(parts) > 1
                by_word.setdefault(parts[skipped], GROUPS[parts[0]] if is_group else entry.summary)
        return by_word

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - named by the base
        """Return the verbs."""
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Any:  # noqa: ARG002
        """Import the verb and return its command."""
        if cmd_name not in self.summaries:
            kind = f"part {cmd_name!r} of {self.prefix}" if self.prefix else f"verb {cmd_name!r}"
            hint = did_you_mean(cmd_name, list(self.summaries))
            raise InputError(f"there is no {kind}", hint=hint)
        words = f"{self.prefix} {cmd_name}".strip()
        if words not in VERBS:
            return VerbGroup(words, GROUPS[words])
        from calibrant.cli.command import VerbCommand

        command = VerbCommand(words)
        if not gc.isenabled():
            # What is loaded by now stays: it is never looked through.
            gc.freeze()
            gc.enable()
        return command

    def format_commands(self, ctx: click.Context, formatter: Any) -> None:  # noqa: ARG002
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(self.summaries.items()))


_with_version = click.version_option(
    __version__, message="calibrant %(version)s", help="Say which version this is."
)
app = _with_version(
    VerbGroup("", "How far can you trust what a model says about its own certainty?")
)


def main() -> None:
    """Run the command line; errors of the data end with one message and exit code 2."""
    # Loading makes only what stays; looking for garbage in it takes a tenth of a small audit.
    gc.disable()
    _prepare_output()
    # Whoever ends a command from outside (a supervisor, `timeout`) is obeyed as Ctrl-C is.
    signal.signal(signal.SIGTERM, _stop)
    try:
        sys.exit(app.main(prog_name="calibrant", standalone_mode=False) or 0)
    except CalibrantError as error:
        _end(f"calibrant: {error}", error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _end("calibrant: stopped", _INTERRUPTED)
    except BrokenPipeError:
        # Whoever read the output has had enough (`| head -1`): no failed check, and no traceback
        # when Python flushes what is left.
        _drop_output()
        sys.exit(_BROKEN_PIPE)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        _drop_output()
        _end(f"calibrant: the output cannot be written: {error.strerror}", InputError.exit_code)
    finally:
        # What is there goes with the program; looking through it first takes another tenth.
        gc.freeze()
        gc.enable()


def _stop(*_: object) -> None:
    """Stop as Ctrl-C does, also where a shell has the command ignore that (`calibrant run &`)."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def _prepare_output() -> None:
    """Make both streams take any letter, and take nothing where they are closed (`>&-`)."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # Kept open until the program ends, as the streams themselves are.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="replace")


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(message: str, code: int) -> None:
    sys.stderr.write(printable(message) + "\n")
    if code == _INTERRUPTED:
        # Python would wait for threads first: of a model that computes, of an address looked up.
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)
