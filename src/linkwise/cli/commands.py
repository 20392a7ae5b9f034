"""The commands and their options. Imports nothing that takes time."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from linkwise.cli.console import Console, ReaderLeftError, exit_code
from linkwise.cli.formats import FORMATS
from linkwise.cli.requests import (
    AskRequest,
    CheckRequest,
    ClusterRequest,
    CompareRequest,
    ServeRequest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from linkwise.cli.requests import DataRequest

    Function = TypeVar("Function", bound=Callable[..., Any])

DEFAULT_METHOD = "auto"
VERSION_FILE = Path(__file__).parents[1] / "_version.py"
FILE = click.Path(path_type=Path)

EXIT_CODES = """
\b
Exit codes:
  0    done
  1    the constraints cannot all hold
  2    a wrong option, file or value
  3    an optional library is missing; the message names the extra
  70   a mistake in linkwise (--debug shows where)
  130  interrupted (Ctrl-C); 143 if terminated
"""


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    # An error in the options is printed as JSON, too.
    console = Console(json="--json" in arguments, arguments=tuple(arguments))
    try:
        with _terminating_cleanly(), console.showing_warnings():
            code = cli.main(list(arguments), "linkwise", standalone_mode=False, obj=console)
            sys.stdout.flush()
    except SystemExit as left:  # of the shell's completion, and of SIGTERM
        return left.code if isinstance(left.code, int) else 0
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001, RUF100  (every error ends here)
        return exit_code(error, console)
    return code if isinstance(code, int) else 0


@contextmanager
def _terminating_cleanly() -> Iterator[None]:
    """Let SIGTERM unwind the stack, so that unfinished files are removed."""

    def leave(number: int, _: Any) -> None:
        sys.exit(128 + number)

    try:
        previous = signal.signal(signal.SIGTERM, leave)
    except ValueError:  # not the main thread, which handles signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _work(module: str) -> Any:
    """Import the module that does a command's work; that takes a second or two."""
    return import_module(f"linkwise.cli.{module}")


def _run(command: str, request: DataRequest, console: Console) -> Any:
    """Read what is given, and only then import what works on it."""
    loading = _work("loading")
    is_of_project = getattr(request, "project", None) is not None
    given = (loading.read_filled if is_of_project else loading.read)(request, console)
    return _work(command).run(request, console, given)


# Options -----------------------------------------------------------------------------------


def _set_on_console(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    setattr(context.find_root().obj, str(parameter.name), value)


def _verbosity_options(function: Function) -> Function:
    """Add the options about what a command prints."""
    for name, text in (
        ("--debug", "Show the traceback of an error."),
        ("--json", "Print a machine-readable summary on stdout."),
        ("--quiet", "Print nothing but results, warnings and errors."),
    ):
        option = click.option(
            name,
            is_flag=True,
            help=text,
            expose_value=False,
            is_eager=True,
            callback=_set_on_console,
        )
        function = option(function)
    return function


def _stacked(*options: Callable[[Function], Function]) -> Callable[[Function], Function]:
    def add(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def _single_file(_: Any, __: Any, typed: tuple[Any, ...]) -> Any:
    """Return the file of pairs: a second one must not replace the first silently."""
    if len(typed) > 1:
        names = ", ".join(map(str, typed))
        raise click.UsageError(
            f"-c was given {len(typed)} times ({names}), but one file of pairs is read. "
            "Join them into one file."
        )
    return typed[0] if typed else None


def _complete_method(_: Any, __: Any, incomplete: str) -> list[str]:
    methods = import_module("linkwise.registry").METHODS
    return [key for key in methods if key.startswith(incomplete)]


_identity_options = _stacked(
    click.option("--id", "id_column", metavar="COLUMN", help="Column with the names of the rows."),
    click.option(
        "--graph", is_flag=True, help="DATA is a graph: an edge list, or a square matrix."
    ),
    click.option(
        "--format",
        type=click.Choice([suffix[1:] for suffix in FORMATS]),
        help="Of DATA, if the name does not tell.",
    ),
    click.option("--encoding", default="utf-8", show_default=True, help="Of text files."),
    click.option("--delimiter", metavar="CHAR", help="Of text files, if it is not found."),
    click.option(
        "--labels", metavar="COLUMN", help="Column with partial labels; empty means unknown."
    ),
    click.option(
        "--max-gb",
        type=click.FloatRange(0, min_open=True),
        default=1.0,
        show_default=True,
        help="Refuse DATA of more than this, and ten times the size of the file, in memory.",
    ),
)
_pair_options = _stacked(
    click.option(
        "--constraints",
        "-c",
        type=FILE,
        multiple=True,
        callback=_single_file,
        metavar="PAIRS",
        help="CSV with i, j, link[, belief].",
    ),
    click.option(
        "--pair-columns",
        metavar="I,J,LINK",
        help="What these columns of PAIRS are called; a fourth is the belief.",
    ),
    click.option(
        "--skip-unknown", is_flag=True, help="Leave out pairs of rows that are not in DATA."
    ),
)
_table_options = _stacked(
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        default=".",
        show_default=True,
        help="What stands before the fraction of a number in text files.",
    ),
    click.option("--truth", metavar="COLUMN", help="Column to score against; never a feature."),
    click.option("--features", multiple=True, metavar="COLUMN,...", help="Use only these columns."),
    click.option("--drop", multiple=True, metavar="COLUMN,...", help="Leave columns out."),
    click.option(
        "--categorical", multiple=True, metavar="COLUMN,...", help="Take columns for categories."
    ),
    click.option(
        "--scale/--no-scale",
        default=None,
        help="Standardise the numbers. On for tables, off for arrays and graphs.",
    ),
    click.option(
        "--impute",
        type=click.Choice(["median"]),
        help="Fill missing values; without it they are an error.",
    ),
    click.option(
        "--use", metavar="KEY", help="Of an .h5ad file: a key of obsp or obsm, or X itself."
    ),
    click.option(
        "--prepared",
        type=FILE,
        metavar="NPZ",
        help="The graph of DATA: read from this file, or written to it if there is none.",
    ),
)
_text = click.option(
    "--text",
    multiple=True,
    metavar="COLUMN,...",
    help="Compare these columns letter by letter: names, addresses, short texts. (`serve` compares "
    "words.)",
)
_shown_options = _stacked(
    click.argument("data", type=FILE), _pair_options, _identity_options, _table_options
)
_data_options = _stacked(_shown_options, _text)
_threads = click.option("--threads", type=click.IntRange(1), help="Use at most so many threads.")
_run_options = _stacked(
    click.option("--seed", type=click.IntRange(0), default=0, show_default=True), _threads
)
_spreadsheet_safe = click.option(
    "--spreadsheet-safe",
    is_flag=True,
    help="Write ' before ids that spreadsheets take for formulas.",
)
_k = "-k", "--clusters", "n_clusters"
_method = click.option(
    "--method",
    "-m",
    default=DEFAULT_METHOD,
    show_default=True,
    shell_complete=_complete_method,
    help="A key of the table that `linkwise methods` prints.",
)
_settings = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a parameter of the method (affinity__NAME for the graph's). May be repeated.",
)


_ignored_options = _stacked(  # of `cluster`, so that the same line can be checked
    *(
        click.option(name, multiple=name == "--set", hidden=True, expose_value=False)
        for name in (
            "--method",
            "--set",
            "--output",
            "--column",
            "--report",
            "--plot",
            "--review",
            "--seed",
        )
    ),
    click.option("--threads", hidden=True, expose_value=False),
    click.option("-m", hidden=True, expose_value=False),
    click.option("-o", hidden=True, expose_value=False),
)


# Commands ----------------------------------------------------------------------------------


def _print_version(context: click.Context, _: Any, value: Any) -> None:
    if value:
        found: dict[str, str] = {}
        exec(VERSION_FILE.read_text(encoding="utf-8"), found)
        click.echo(f"linkwise {found['__version__']}")
        context.exit()


class _Program(click.Group):
    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except BrokenPipeError as error:  # click would leave with 1, which means something else
            raise ReaderLeftError from error


@click.group(
    cls=_Program,
    invoke_without_command=True,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version)
@click.pass_context
def cli(context: click.Context) -> None:
    """Cluster data under constraints: pairs that belong together or do not, and known labels."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@cli.command()
@_data_options
@click.option(*_k, type=click.IntRange(2), help="Number of clusters.")
@_method
@_settings
@click.option("--output", "-o", type=FILE, help="Write ids and clusters here, not to stdout.")
@_spreadsheet_safe
@click.option("--column", default="cluster", show_default=True, help="Name of the new column.")
@click.option("--report", type=FILE, help="Write an HTML report.")
@click.option("--plot", type=FILE, help="Draw the clusters (.png, .svg, .pdf).")
@click.option("--review", type=FILE, help="Write the pairs to review (of method linkage).")
@click.option(
    "--duplicates", type=FILE, help="Write clusters with their rows (.csv, .html; method linkage)."
)
@click.option(
    "--workers", type=click.IntRange(1), help="DATA are parquet files: use so many processes."
)
@click.option("--scheduler", metavar="ADDRESS", help="The same on a running Dask cluster.")
@_run_options
@_verbosity_options
@click.pass_obj
def cluster(console: Console, /, **typed: Any) -> Any:
    """Cluster the rows of DATA under constraints.

    DATA is a table such as .csv, an array, a graph (a sparse matrix, or an edge list with --graph)
    or AnnData; - reads it from stdin. --format lists the suffixes. The output has the ids of the
    rows and their clusters, in the format that its name tells; .h5ad is a copy of such DATA.
    """
    request = ClusterRequest(**typed)
    if request.workers is not None or request.scheduler is not None:
        return _work("parts").run(request, console)
    return _run("cluster", request, console)


@cli.command()
@click.argument("files", type=FILE, nargs=-1, required=True, metavar="PAIRS [DATA]")
@_pair_options
@_identity_options
@_table_options
@_text
@_ignored_options
@click.option(*_k, type=click.IntRange(1), help="Also check whether so many clusters suffice.")
@click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, help="Conflicts to list."
)
@_verbosity_options
@click.pass_obj
def check(console: Console, /, **typed: Any) -> Any:
    """Check a file of pairs, before any clustering.

    Prints what follows from them, what contradicts, and how many clusters they need.

    With DATA the names are looked up there; without, every name in PAIRS is a sample. The exit
    code is 1 if the pairs cannot all hold. A command line of `cluster` can be checked as it is:
    check DATA -c PAIRS, with the same options.
    """
    pairs, data = _pairs_and_data(typed.pop("files"), typed.pop("constraints"))
    return _work("check").run(CheckRequest(pairs=pairs, data=data, **typed), console)


def _pairs_and_data(files: Sequence[Path], constraints: Path | None) -> tuple[Path, Path | None]:
    """Return the two files of `check`, which may be typed as in `cluster`."""
    if len(files) > (2 if constraints is None else 1):
        shown = " ".join(map(str, files))
        raise click.UsageError(f"check takes PAIRS and DATA, or DATA -c PAIRS, not {shown}.")
    if constraints is not None:
        return constraints, files[0]
    return files[0], files[1] if len(files) == 2 else None


@cli.command()
@_data_options
@click.option(*_k, type=click.IntRange(2), help="Number of clusters.")
@click.option(
    "--method",
    "-m",
    "methods",
    multiple=True,
    shell_complete=_complete_method,
    help="A method to compare; repeat it. All that fit the data by default.",
)
@_settings
@click.option(
    "--folds",
    type=click.IntRange(0),
    help="Judge by held-out constraints in so many folds; 5 if there is no --truth, 0 for none.",
)
@click.option("--output", "-o", type=FILE, help="Write the table as CSV.")
@_run_options
@_verbosity_options
@click.pass_obj
def compare(console: Console, /, **typed: Any) -> Any:
    """Run several methods on DATA, side by side."""
    return _run("compare", CompareRequest(**typed), console)


@cli.command()
@_data_options
@click.option(
    *_k, type=click.IntRange(2), help="Number of clusters; the answers tell it if not given."
)
@click.option(
    "--method",
    "-m",
    shell_complete=_complete_method,
    help="How rows are clustered between questions; auto unless given.",
)
@click.option("--strategy", help="How questions are chosen; committee unless given.")
@click.option("--session", type=FILE, help="Keep the answers here, and resume from it.")
@click.option(
    "--project", type=FILE, help="Keep them in a project of `linkwise serve`; both may be open."
)
@click.option("--output", "-o", type=FILE, help="Write the answers as a CSV of pairs at the end.")
@_spreadsheet_safe
@click.option(
    "--seed", type=click.IntRange(0), help="0 by default; a session keeps the one it began with."
)
@_threads
@_verbosity_options
@click.pass_obj
def ask(console: Console, /, **typed: Any) -> Any:
    """Ask you which rows of DATA belong together.

    The most useful questions come first, and the clustering follows the answers.

    One key is one answer: s same, d different, u (or ?) don't know, z undo, q quit. In a pipe
    one line is one answer, and may be a word: same, different, unknown, undo, quit.
    """
    return _run("ask", AskRequest(**typed), console)


@cli.command()
@_shown_options
@click.option(*_k, type=click.IntRange(2), help="Number of clusters; found if it is left out.")
@click.option(
    "--method",
    "-m",
    type=click.Choice(["auto", "linkage"]),
    default="auto",
    show_default=True,
    help="linkage: duplicates and other small clusters, shown by their size.",
)
@click.option(
    "--text",
    "shown_text",
    metavar="COLUMN",
    help="Column with texts, which are shown and compared by their words; of linkage several, "
    "with commas, letter by letter. (`cluster` and `ask` compare letters.)",
)
@click.option(
    "--image",
    metavar="COLUMN",
    help="Column with the files of images; or WIDTHxHEIGHT if the features are pixels.",
)
@click.option(
    "--kind",
    type=click.Choice(["row", "text", "image", "series", "point"]),
    help="What a row is shown as, if that is not clear.",
)
@click.option(
    "--project", type=FILE, help="Keep the answers here; DATA with .linkwise unless given."
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="A free one unless given.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Others than this machine can then open the page, with its token.",
)
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.")
@_threads
@_verbosity_options
@click.pass_obj
def serve(console: Console, /, **typed: Any) -> Any:
    """Open a page that asks which rows of DATA belong together.

    One key is one answer, and the clusters follow on a map. Answers are kept in a file as they are
    given; the same command goes on where it was left.
    """
    return _work("serve").run(ServeRequest(**typed), console)


@cli.command()
@_verbosity_options
@click.pass_obj
def methods(console: Console) -> Any:
    """List the methods and what they take."""
    return _work("methods").run(console)


@cli.command()
@click.argument("name", required=False)
@click.option("--output", "-o", type=FILE, help="Write the data set NAME (.csv, .tsv, .npz).")
@_verbosity_options
@click.pass_obj
def datasets(console: Console, name: str | None, output: Path | None) -> Any:
    """List the built-in data sets, or write one."""
    return _work("datasets").run(console, name, output)


@cli.command()
@click.argument("folder", type=FILE, default="demo-output")
@_verbosity_options
@click.pass_obj
def demo(console: Console, folder: Path) -> Any:
    """Cluster built-in data, and draw the answer.

    Without and with constraints; the picture goes to FOLDER.
    """
    _work("demo").run(console, folder)


@cli.command("warm-up")
@click.argument("methods", nargs=-1, metavar="[METHOD]...", shell_complete=_complete_method)
@_verbosity_options
@click.pass_obj
def warm_up(console: Console, methods: tuple[str, ...]) -> Any:
    """Compile what the first fits would compile.

    Once on a machine: for the methods given, or for all. What is compiled is kept beside the
    installed package, or in the folder NUMBA_CACHE_DIR.
    """
    return _work("warm_up").run(console, methods)


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> Any:
    r"""Print a script for completion in your shell.

    \b
    bash:  eval "$(linkwise completion bash)"
    zsh:   eval "$(linkwise completion zsh)"
    fish:  linkwise completion fish | source
    """
    complete = import_module("click.shell_completion").get_completion_class(shell)
    click.echo(complete(cli, {}, "linkwise", "_LINKWISE_COMPLETE").source())
