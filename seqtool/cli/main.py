"""The application: registers the commands and turns every expected error into one message and an exit code."""

import os
import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from seqtool import __version__
from seqtool.cli.option_names import with_options
from seqtool.cli.streams import BROKEN_PIPE, drop_output, quiet_if_closed
from seqtool.errors import OptionError, SeqtoolError, Terminated
from seqtool.visible import make_visible

UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="seqtool",
    help="From a parallel corpus to a translator you can ship.\n\n"
    "Start with [bold]seqtool train[/bold] (the demo corpus) or [bold]seqtool train my.tsv -o run[/bold], "
    "then [bold]echo 'Hello.' | seqtool translate -m run[/bold].",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": lambda name: "output" if name == "out" else name,  # --out: an earlier name
    },
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"seqtool {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; exit codes are 0 done, 1 a problem to fix, 2 wrong usage, 130 Ctrl-C, 143 SIGTERM."""
    if sys.stderr is None:  # closed by whoever started this
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    signal.signal(signal.SIGTERM, terminate)
    from seqtool.cli import commands

    called = sys.argv[1] if len(sys.argv) > 1 else None
    commands.register(app, called)
    try:
        code = app(standalone_mode=False)
        with quiet_if_closed():  # what is still to be written
            pass
        if code == 130:  # typer's, for Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code)
    except BrokenPipeError:
        drop_output()
        sys.exit(BROKEN_PIPE)
    except OptionError as error:
        command = f"seqtool {called}" if called in commands.COMMANDS else "seqtool"
        fail(f"{make_visible(with_options(error.marked))}\nTry '{command} --help'.", 2, error)
    except SeqtoolError as error:
        fail(make_visible(with_options(error.marked)), 1, error)
    except UsageError as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "seqtool"
        message = with_advice(error.format_message(), error, called)  # type: ignore[attr-defined]
        fail(f"{make_visible(message)}\nTry '{command} --help'.", 2, error)
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and "can't allocate memory" not in str(error):
            raise
        fail("there is not enough memory for this; give a smaller model or batch, or use a larger machine", 1, error)
    except OSError as error:
        place = f"{make_visible(str(error.filename))}: " if error.filename else ""
        fail(
            f"{place}{error.strerror or error}; check the path, its permissions and the space on its disk",
            1,
            error,
        )
    except (KeyboardInterrupt, Terminated) as interruption:
        print("seqtool: interrupted", file=sys.stderr)
        sys.exit(128 + (signal.SIGTERM if isinstance(interruption, Terminated) else signal.SIGINT))
    finally:  # from here on a signal ends the process at once: an exception while Python ends would be a traceback
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)


def with_advice(message: str, error: Exception, called: str | None) -> str:
    """Return the message of wrong usage; an option or a command of other toolkits gets the name that it has here."""
    from seqtool.config.peers import advise, advise_command

    option, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if called and message.startswith("No such command") and (advice := advise_command(called)):
        return f"No such command '{called}'; {advice}"
    if not option or context is None:
        return message
    options = {name for parameter in context.command.params for name in parameter.opts}
    advice = advise(option, options)
    return f"No such option: {option}; {advice}" if advice else message


def terminate(number: int, frame: FrameType | None) -> None:
    """End by SIGTERM as by Ctrl-C, but with its own exit code."""
    raise Terminated


def fail(message: str, code: int, error: BaseException) -> None:
    """Print a message for a person and exit; with SEQTOOL_DEBUG=1 show where the error came from first."""
    if os.environ.get("SEQTOOL_DEBUG") == "1":
        raise error
    print(f"seqtool: error: {message}", file=sys.stderr)
    try:
        print(end="", flush=True)
    except OSError:  # it was the reason, and is reported already
        drop_output()
    sys.exit(code)
