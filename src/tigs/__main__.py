"""The command `tigs`: one table from command to function. Nothing heavy is imported before a command is known to be right."""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tigs import __version__
from tigs.composition import available, compose
from tigs.config import METHODS, TASKS, Config
from tigs.errors import TigsError


class Command(NamedTuple):
    """A subcommand; its module in `tigs.commands` offers `run(config, options)`."""

    summary: str
    module: str
    add_options: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    own_words: tuple[str, ...] = ()
    """Words that look like settings but are for the command itself to understand; `*` stands for anything."""
    json_to_file: bool = False
    """Whether `--json PATH` writes there; `--json` alone prints, as everywhere."""


def _data_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--template-bleu", action="store_true", help="BLEU of the bare templates of all test sets")


def _show_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="a .ckpt file")


def _bench_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("train", "search"), help="what to measure; the options are for search")
    parser.add_argument("--cells", metavar="NAMES", help="as random-25,middle-75; all if not given")
    parser.add_argument("--templates", type=int, default=200, metavar="N", help="of each cell (200)")
    parser.add_argument("--templates-slow", type=int, default=50, metavar="N", help="for the widest beam (50)")
    parser.add_argument(
        "--coordinate-templates", type=int, default=200, metavar="N", help="on which every word is tried (200)"
    )
    parser.add_argument(
        "--exact", type=int, default=0, metavar="N", help="sentences with few blanks to prove the optimum of"
    )
    parser.add_argument(
        "--exact-blanks", default="1,2,3", metavar="NUMBERS", help="numbers of blanks of --exact (1,2,3)"
    )
    parser.add_argument(
        "--exact-steps", type=int, default=200_000, metavar="N", help="after which a proof is given up (200000)"
    )
    parser.add_argument("--growth", action="store_true", help="how cost grows with vocabulary, length, blanks and K")
    parser.add_argument("--plot", metavar="PATH", help="PNG of NLL against seconds; beside the JSON if not given")


def _sweep_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--one-at-a-time", action="store_true", help="each listed value alone beside the base, not all combinations"
    )
    parser.add_argument("--templates", type=int, default=100, metavar="N", help="validation sentences per cell (100)")
    parser.add_argument("--cells", default="", metavar="NAMES", help="as random-25,middle-50; all if not given")
    parser.add_argument("--name", metavar="NAME", help="of the file of results; the methods' names if not given")


def _rerun_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "figures", metavar="FILE", help="figures of a method on a test set, as results/cpu/.../tigs/random-25.json"
    )


def _report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--png", metavar="FOLDER", help="write the charts as PNG files too")


def _claims_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--with-unk",
        metavar="FOLDER",
        help="figures made with method.allow_unk=true, for the claim about <unk> (OUTPUT_DIR/with-unk, if it is there)",
    )


def _infill_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text",
        metavar="TEXT",
        help="a sentence with ____ for a token, ____{1,3} for one to three; settings come behind it",
    )
    parser.add_argument("--context", metavar="TEXT", default="", help="what the sentence answers to")


COMMANDS = {
    "data": Command("prepare a task's corpus and say what is in it", "data", _data_options),
    "train": Command("train every model of a task, or one with model=NAME", "train"),
    "eval": Command(
        "fill the test sets by a method, or by every one with method=all", "eval", own_words=("method=all",)
    ),
    "sweep": Command(
        "try lists as method.step_size=3,10,30 on validation templates",
        "sweep",
        _sweep_options,
        own_words=("method=*,*", "method.*=*,*"),
    ),
    "infill": Command("fill the gaps of one sentence", "infill", _infill_options),
    "table": Command("the paper's table with our figures beside the paper's", "table", own_words=("task=all",)),
    "claims": Command("what the paper says of its results, held against our figures", "claims", _claims_options),
    "rerun": Command("make one file of figures again: train, fill, compare", "rerun", _rerun_options),
    "report": Command("every figure, picture and example as one HTML page", "report", _report_options),
    "dashboard": Command("make a W&B workspace that compares the methods", "dashboard"),
    "bench": Command("measure speed, as ratios side by side in one run", "bench", _bench_options, json_to_file=True),
    "show": Command("say what a checkpoint is", "show", _show_options),
}

_SETTINGS = """settings (key=value, in any order):
  task=NAME            {tasks}
  profile=NAME         {profiles}
  method=NAME          {methods}
  data.dir=PATH        read the publisher's files from a folder
  data.source=NAME     sample (built in), download, folder
  ...                  any key of the files in experiments/, for example vocabulary.size=4000
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0, or 2 after an error that the user can mend."""
    options = _parse(arguments)
    try:
        return _run(options)
    except TigsError as error:
        if options.debug:
            traceback.print_exc()
        sys.stderr.write(f"tigs {options.command}: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write(f"tigs {options.command}: interrupted\n")
        return 130


def _run(options: argparse.Namespace) -> int:
    command = COMMANDS[options.command]
    own = {word for pattern in command.own_words for word in fnmatch.filter(options.settings, pattern)}
    config = compose([word for word in options.settings if word not in own])
    run: Callable[[Config, argparse.Namespace], None]
    run = importlib.import_module(f"tigs.commands.{command.module}").run
    run(config, options)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    # argparse takes the settings before an option such as --json; those behind it are left over.
    unknown = [word for word in rest if word.startswith("-")]
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    options.settings += rest
    if isinstance(options.json, str) and "=" in options.json:  # a setting, not a file
        options.settings.append(options.json)
        options.json = True
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tigs", description="Text infilling by inference.")
    parser.add_argument("--version", action="version", version=f"tigs {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    settings = _SETTINGS.format(
        tasks=", ".join(TASKS), profiles=", ".join(available("profile")), methods=", ".join(METHODS)
    )
    for name, command in COMMANDS.items():
        subparser = subparsers.add_parser(
            name,
            help=command.summary,
            description=command.summary.capitalize() + ".",
            epilog=settings,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_options(subparser)
        subparser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="settings, see below")
        if command.json_to_file:
            subparser.add_argument(
                "--json",
                nargs="?",
                const=True,
                default=False,
                metavar="PATH",
                help="JSON, on standard output or in a file",
            )
        else:
            subparser.add_argument("--json", action="store_true", help="one JSON document on standard output")
        subparser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
