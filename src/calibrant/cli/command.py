"""A command made from the declaration of a verb, and what it asks at a terminal."""

import inspect
import re
import shlex
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from itertools import pairwise
from typing import Annotated, Any

import click

from calibrant.cli import SETTINGS, VERBS, verb_function
from calibrant.core.errors import CalibrantError, ClaimFailed, Interrupted, QuestionError, printable
from calibrant.core.values import parsed
from calibrant.core.verb import GROUPS, OUTPUT, Option, Parameter, Verb, declaration, verb


def chosen_reading(question: QuestionError) -> dict[str, Any] | None:
    """Return the options of the reading that somebody chose; None where nobody can be asked.

    Parameters
    ----------
    question
        The error that carries the readings.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty() and len(question.readings) > 1):
        return None
    question.for_shell()
    text = str(question).partition("\n  -> ")[0]
    click.echo(f"calibrant: {text}", err=True)
    keys = [str(number) for number in range(1, len(question.readings) + 1)]
    click.echo(f"Which is meant? Press {', '.join(keys)}, or q to stop: ", nl=False, err=True)
    while True:
        key = click.getchar()
        if key in keys:
            click.echo(key, err=True)
            reading = question.readings[int(key) - 1]
            modes = [
                (f"--{n}",) if v is True else (f"--{n}", v)
                for n, v in _typed(reading.options).items()
            ]
            words = shlex.join(word for mode in modes for word in mode)
            click.echo(printable(f"Read with {words}"), err=True)
            return _typed(reading.options)
        if key in ("q", "Q", "\x03", "\x04", "\x1b"):
            click.echo("q", err=True)
            return None


def _typed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as they are typed: lists with commas."""
    lists = {name: ",".join(value) for name, value in options.items() if isinstance(value, list)}
    return {**options, **lists}


_TYPED = "calibrant.typed"
"""Where a call keeps the words that were typed."""
_ALL = "help_all"
_FRONT, _MOST = ("confidence", "correct", "model", "html", "json"), 6


@verb()
def _outputs(
    *,
    json: Annotated[str | None, Option(metavar="PATH|-", group=OUTPUT, place="write")] = None,
    html: Annotated[str | None, Option(metavar="PATH", group=OUTPUT, place="write")] = None,
    full: Annotated[bool, Option(group=OUTPUT)] = False,
    top: Annotated[int | None, Option(metavar="N", group=OUTPUT, min=1, max=10**9)] = None,
    sort: Annotated[str | None, Option(metavar="COLUMN", group=OUTPUT)] = None,
    fail_if: Annotated[str | None, Option(metavar="CLAIM", group=OUTPUT, kind="several")] = None,
    allow_undecided: Annotated[bool, Option(group=OUTPUT)] = False,
    junit: Annotated[str | None, Option(metavar="PATH", group=OUTPUT, place="write")] = None,
    quiet: Annotated[bool, Option(group=OUTPUT)] = False,
) -> None:
    """Declare what becomes of a result; commands have some of these options.

    Parameters
    ----------
    json
        Write the result as JSON; - for standard output.
    html
        Write a self-contained report.
    full
        Show every table.
    top
        Show this many rows of a table.
    sort
        Sort the tables by this column.
    fail_if
        Exit with 1 where this holds; may be given several times: 'ece>0.05'.
    allow_undecided
        Let a condition on a claim pass where the claim is undecided.
    junit
        Write these checks as a JUnit report.
    quiet
        No progress bar.
    """


OUTPUTS = declaration(_outputs).parameters


def output_parameters(declared: Verb) -> dict[str, Parameter]:
    """Return the output options of a command by name."""
    more = ("quiet",) if "progress" in declared.supplied.values() else ()
    return {name: OUTPUTS[name] for name in (*declared.outputs, *more)}


@contextmanager
def cluster_speaks_on_stderr() -> Iterator[None]:
    """Send what is printed meanwhile to standard error, and leave the cluster at the end.

    A Ray driver has a thread that prints on standard output that a node was lost, whatever its
    logging options say, also after the last part came back: ``--json -`` would not be JSON.
    """
    with redirect_stdout(sys.stderr):
        try:
            yield
        finally:
            ray = sys.modules.get("ray")
            if ray is not None and ray.is_initialized():
                ray.shutdown()


class VerbCommand(click.Command):
    """A command whose options are those of a verb, grouped in its help."""

    def __init__(self, words: str) -> None:
        self.words = words
        self.function = verb_function(words)
        self.verb: Verb = declaration(self.function)
        self.outputs = output_parameters(self.verb)
        declared = [*self.verb.parameters.values(), *self.outputs.values()]
        self.groups = {parameter.name: parameter.option.group for parameter in declared}
        params = [_click_parameter(parameter) for parameter in declared]
        flags = {check.flag: check.help for check in self.verb.checks if check.flag}
        params += [click.Option([f"--{flag}"], is_flag=True, help=flags[flag]) for flag in flags]
        params.append(_all_options())
        name, about = words.split()[-1], VERBS[words].summary
        super().__init__(
            name, params=params, callback=self._run, help=about, context_settings=SETTINGS
        )

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return what a call needs, and that there are options."""
        required = [p for p in self.verb.parameters.values() if p.is_required]
        requirement = [f"--{p.word} {p.option.metavar}" for p in required if not p.option.argument]
        arguments = [part for part in super().collect_usage_pieces(ctx) if part != "[OPTIONS]"]
        return [*arguments, *requirement, "[options]"]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options that a first call needs, or all by group, and the example."""
        records = dict(self._records(ctx))
        front = list(records) if ctx.meta.get(_ALL) else self._front(records)
        for group in GROUPS:
            rows = [records[name] for name in front if self.groups.get(name, OUTPUT) == group]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)
        if len(records) > len(front):
            with formatter.section("More"):
                text = f"calibrant {self.words} --help-all"
                formatter.write_dl([(text, f"All {len(records)} options.")])
        if self.verb.example:
            with formatter.section("Example"):
                formatter.write_text(self.verb.example)

    def _records(self, ctx: click.Context) -> Iterator[tuple[str, tuple[str, str]]]:
        """Yield each option by argument, with what is typed and what it means."""
        for param in self.get_params(ctx):
            name, row = param.name or "", param.get_help_record(ctx)
            if isinstance(param, click.Argument):
                meaning = self.verb.parameters[name].option.help
                row = param.make_metavar(click.Context(click.Command(""))), meaning
            if row is not None:
                yield name, row

    def _front(self, names: Collection[str]) -> list[str]:
        """Return what a first call needs: what is required, the example's, columns and files."""
        required = [p.name for p in self.verb.parameters.values() if p.is_required]
        arguments = [p.name for p in self.verb.parameters.values() if p.option.argument]
        words = [word.replace("-", "_") for word in re.findall(r"--([\w-]+)", self.verb.example)]
        typed = {p.word.replace("-", "_"): p.name for p in self.verb.parameters.values()}
        target_names = [*required, *(typed.get(word, word) for word in words), *_FRONT, *names]
        options = [name for name in dict.fromkeys(target_names) if name in names]
        options = [name for name in options if name not in (*arguments, "help", _ALL)]
        choice = {*arguments, *options[:_MOST]}
        return [name for name in names if name in choice]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the words apart; an option whose value was forgotten does not take the next one."""
        params = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        options = {flag: param for param in params for flag in param.opts}
        for word, after in pairwise(args):
            if word in options and not options[word].is_flag and after in options:
                param = options[word]
                example = param.metavar or param.make_metavar(ctx)
                raise click.UsageError(f"Option {word!r} needs a value: {word} {example}", ctx)
        ctx.meta[_TYPED] = tuple(args)
        return super().parse_args(ctx, args)

    def _run(self, **texts: Any) -> None:
        try:
            self._run_verb(texts)
        except QuestionError as question:
            if (choice := chosen_reading(question)) is not None:
                self._run(**{**texts, **choice})
                return
            question.command = self._command(texts, question.readings[0].options)
            question.for_shell()
            raise
        except CalibrantError as error:
            error.for_shell({p.name: p.word for p in self.verb.parameters.values()})
            raise

    def _command(self, texts: Mapping[str, Any], more: Mapping[str, Any]) -> str:
        """Return the call that was typed with further options."""
        typed = click.get_current_context().meta[_TYPED]
        words = ["calibrant", *self.words.split(), *typed]
        for name, value in _typed(more).items():
            if texts.get(name) is None:
                words.append(f"--{self.verb.parameters[name].word}")
                words += [] if value is True else [value]
        return shlex.join(words)

    def _run_verb(self, texts: Mapping[str, Any]) -> None:
        values = _given(self.verb.parameters, texts)
        outputs = _given(self.outputs, texts)
        for name, value in outputs.items():
            # Only JSON may go to standard output, where the tables go otherwise.
            if (name, value) != ("json", "-"):
                self.outputs[name].taken(value)
        self.verb.keep_inputs(
            values, [v for n, v in outputs.items() if self.outputs[n].option.place]
        )
        targets = [
            check for check in self.verb.checks if texts.get(check.flag.replace("-", "_"), 1)
        ]
        conditions = outputs.get("fail_if")
        if conditions:
            from calibrant.findings.claims.checks import failed_checks, parse_check

            # Refused before any work begins, where one cannot be read.
            checks = [parse_check(text) for text in conditions]
        result = self._called(values, quiet=bool(outputs.pop("quiet", values.get("dry_run"))))
        from calibrant.cli.terminal import emit

        emit(result, outputs, available=self.outputs)
        if conditions:
            allowed = bool(outputs.get("allow_undecided"))
            failures = failed_checks(result, checks, allow_undecided=allowed)
            if failures:
                raise ClaimFailed("the check fails:\n  " + "\n  ".join(failures))
        for check in targets:
            failure = check.failure(result)
            if failure is not None:
                failed = ClaimFailed(failure)
                failed.exit_code = check.exit_code
                raise failed

    def _called(self, values: dict[str, Any], *, quiet: bool) -> Any:
        if hasattr(signal, "siginterrupt"):
            # Polars, imported with the verb, lets reads and waits go on after Ctrl-C.
            signal.siginterrupt(signal.SIGINT, True)
        # A bar gives standard output back as it found it, so it begins within and ends first.
        with cluster_speaks_on_stderr(), _supplied(self.function, self.words, quiet) as more:
            try:
                return self.function(**values, **more)
            except KeyboardInterrupt:
                if not self.verb.resumable:
                    raise
                raise Interrupted(_kept(self.words, values, more)) from None


def _kept(words: str, values: Mapping[str, Any], supplied: Mapping[str, Any]) -> str:
    """Say what is kept of work that was stopped, and how to go on."""
    counts = [getattr(item, "arrived", None) for item in supplied.values()]
    arrived = next((count for count in counts if count is not None), None)
    first = next(iter(values.values()), "")
    selection = "stopped before anything was sent"
    if arrived is not None:
        selection = f"stopped; the {arrived:,} answers that had arrived are kept in the ledger"
    return f"{selection}\n  -> `calibrant {words} {first}` goes on"


# -- from a declaration to what is typed -------------------------------------------------------


def _all_options() -> click.Option:
    """Return the option that shows every option."""

    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta[_ALL] = True
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    return click.Option(
        ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show,
        help="Show all options and exit.",
    )  # fmt: skip


def _click_parameter(parameter: Parameter) -> click.Parameter:
    option = parameter.option
    if option.argument:
        most = -1 if option.kind == "several" else 1
        display = option.metavar or parameter.name.upper()
        return click.Argument(
            [parameter.name], nargs=most, required=parameter.is_required, metavar=display
        )
    flag = f"--{parameter.word}"
    if parameter.type is bool:
        two = f"{flag}/--no-{flag[2:]}" if parameter.default is True else flag
        return click.Option([two, parameter.name], is_flag=True, default=None, help=option.help)
    display = parameter.shown_default
    return click.Option(
        [flag, parameter.name],
        metavar=option.metavar or "TEXT",
        multiple=option.kind == "several",
        required=parameter.is_required,
        help=option.help + (f" [default: {display}]" if display else ""),
    )


# -- from what is typed to values --------------------------------------------------------------


def _given(parameters: Mapping[str, Parameter], texts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that were given, by argument; what was not given is left out."""
    values: dict[str, Any] = {}
    for name, parameter in parameters.items():
        text = texts.get(name)
        if isinstance(text, bool):
            values[name] = text
        elif isinstance(text, tuple) and text:
            # One input is the input, not a list of one.
            alone = parameter.option.argument and len(text) == 1
            values[name] = text[0] if alone else list(text)
        elif isinstance(text, str):
            values[name] = parsed(parameter.option, name, text, parameter.type)
    return values


@contextmanager
def _supplied(function: Callable[..., Any], words: str, quiet: bool) -> Iterator[dict[str, Any]]:
    """Yield the arguments that the command line supplies by itself; meanwhile a bar may move."""
    # Loaded here: help and refusals need none of it.
    from calibrant.cli import terminal

    supplied = declaration(function).supplied
    # A server that is up waits, and a question needs the line: neither is work in progress.
    waits = "on_start" in inspect.signature(function).parameters
    with ExitStack() as stack:
        bar = terminal.StepBar(f"calibrant {words}")
        if not (waits or quiet or "confirmation" in supplied.values()):
            stack.enter_context(bar)
        makers: dict[str, Callable[[], Any]] = {
            "alarms": lambda: terminal.announce,
            "confirmation": lambda: terminal.agreed,
            "steps": lambda: bar,
            "progress": lambda: stack.enter_context(terminal.RunBar(enabled=not quiet, before=bar)),
        }
        yield {name: makers[kind]() for name, kind in supplied.items()}
