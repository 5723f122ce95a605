"""The command itself: exit codes, one line for a mistake, and nothing heavy loaded before it is known to be right."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

from tigs import __version__
from tigs.__main__ import COMMANDS

HEAVY = {"torch", "pytorch_lightning", "datasets", "wandb", "sacrebleu"}
HEAVY_WAS_LOADED = 99

PROBE = f"""
import sys
from tigs.__main__ import main
try:
    code = main()
except SystemExit as stop:
    code = stop.code
loaded = {HEAVY!r} & set(sys.modules)
if loaded:
    sys.stderr.write(str(loaded))
    code = {HEAVY_WAS_LOADED}
raise SystemExit(code)
"""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--help"], 0),
        (["data", "--help"], 0),
        (["train", "--help"], 0),
        (["eval", "--help"], 0),
        (["dta"], 2),
        (["data", "--jason"], 2),
        (["data", "model.hiden=3"], 2),
        (["train", "trainer.learning_rate=-1"], 2),
        (["train", "task=music"], 2),
        (["eval", "method=tiggs"], 2),
        (["sweep", "method.step_siz=3,10"], 2),
        (["train", "method=all"], 2),
    ],
)
def test_help_and_mistakes_are_answered_without_loading_anything_heavy(words, code):
    ran = subprocess.run([sys.executable, "-c", PROBE, *words], capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr
    assert bool(ran.stdout) == (code == 0)


def test_it_runs_as_a_module():
    ran = subprocess.run([sys.executable, "-m", "tigs", "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"tigs {__version__}\n"


def test_the_help_names_every_command_and_what_it_takes(tigs):
    overview = tigs("--help").out
    for name, command in COMMANDS.items():
        assert command.summary in overview
        own = tigs(name, "--help").out
        assert all(word in own for word in ("--json", "--debug", "task=", "profile=", "small", "poetry"))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_can_be_run(name):
    assert callable(importlib.import_module(f"tigs.commands.{COMMANDS[name].module}").run)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["data", "model.hiden=3"], "model.hidden"),
        (["data", "test_sets.ratios=[0]"], "test_sets.ratios"),
        (["train", "task=music"], "music"),
        (["data", "poetry"], "poetry"),
    ],
)
def test_a_mistake_is_one_line_on_standard_error_and_exit_code_2(tigs, words, named):
    ran = tigs(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"tigs {words[0]}: ")
    assert ran.err.count("\n") == 1
    assert named in ran.err


def test_debug_shows_where_a_mistake_was_found_and_keeps_the_exit_code(tigs):
    plain, debugged = tigs("data", "seed=-1"), tigs("data", "seed=-1", "--debug")
    assert "Traceback" in debugged.err
    assert "check_ranges" in debugged.err
    assert debugged.err.endswith(plain.err)
    assert (debugged.code, debugged.out) == (2, "")


def test_an_unknown_command_or_option_is_named(tigs):
    assert "'dta'" in tigs("dta").err.splitlines()[-1]
    assert tigs("data", "--jason", "task=aprc").err.splitlines()[-1].endswith("unrecognized arguments: --jason")


def test_an_interruption_leaves_no_traceback(tigs, monkeypatch):
    def interrupt(config, options):
        raise KeyboardInterrupt

    monkeypatch.setattr("tigs.commands.data.run", interrupt)
    assert tigs("data") == (130, "", "tigs data: interrupted\n")


def test_json_is_one_document_and_all_there_is_on_standard_output(tigs, small_words):
    ran = tigs("data", *small_words("aprc"), "--json")
    document, end = json.JSONDecoder().raw_decode(ran.out)
    assert ran.out[end:] == "\n"
    assert (ran.code, ran.err) == (0, "")
    assert document["task"] == "aprc"


def test_settings_and_options_stand_in_any_order(tigs, small_words):
    words = small_words("aprc")
    orders = ([*words, "--json"], ["--json", *words], [*words[:2], "--json", *words[2:]])
    first, *others = (tigs("data", *order).out for order in orders)
    assert first
    assert all(other == first for other in others)
