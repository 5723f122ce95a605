"""Imports go one way only; read from the source of every module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tigs

PACKAGE = Path(tigs.__file__).parent
LAYERS = ("data", "models", "training", "inference", "evaluation", "report")
ABOVE_ALL = ("commands", "__main__")


def module_name(path):
    parts = ["tigs", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path):
    """Full names of all that a file imports, inside functions too; `from a import b` gives `a.b`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute, so that this test can read them"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


IMPORTS = {module_name(path): imports_of(path) for path in sorted(PACKAGE.rglob("*.py"))}


def part_of(name):
    """The first name below `tigs`: a layer, or a module of the shared ground."""
    return [*name.split("."), ""][1]


def importers_of(package):
    return {module for module, names in IMPORTS.items() if any(name.split(".")[0] == package for name in names)}


def test_the_reader_of_imports_sees_every_form():
    folder = PACKAGE / "data"
    assert {"tigs.data.special.UNK_ID", "datasets"} <= imports_of(folder / "prepare.py")
    assert "pyarrow" in imports_of(folder / "corpora" / "files.py")  # inside a function
    assert len(IMPORTS) > 30


@pytest.mark.parametrize("module", [name for name in IMPORTS if part_of(name) in LAYERS])
def test_a_layer_imports_only_what_lies_to_its_left(module):
    place = LAYERS.index(part_of(module))
    for name in IMPORTS[module]:
        if not name.startswith("tigs."):
            continue
        assert part_of(name) not in ABOVE_ALL, f"{module} imports {name}"
        if part_of(name) in LAYERS:
            assert LAYERS.index(part_of(name)) <= place, f"{module} imports {name}"


def test_the_shared_ground_imports_no_layer():
    ground = [name for name in IMPORTS if part_of(name) not in (*LAYERS, *ABOVE_ALL)]
    assert "tigs.config" in ground
    for module in ground:
        upward = {
            name for name in IMPORTS[module] if part_of(name) in (*LAYERS, *ABOVE_ALL) and name.startswith("tigs.")
        }
        assert not upward, module


def test_every_part_of_the_package_has_a_place():
    ground = {"", "composition", "config", "console", "errors", "progress", "tracking", "validation", "whole_file"}
    assert {part_of(name) for name in IMPORTS} <= ground | set(LAYERS) | set(ABOVE_ALL)


def test_only_tracking_imports_wandb():
    assert importers_of("wandb") == {"tigs.tracking"}


def test_networks_know_nothing_of_lightning():
    foreign = importers_of("pytorch_lightning") | importers_of("lightning")
    assert "tigs.data.datamodule" in foreign
    assert not {module for module in foreign if part_of(module) == "models"}


def test_a_report_needs_no_torch():
    assert "tigs.data.batch" in importers_of("torch")
    assert not {module for module in importers_of("torch") if part_of(module) == "report"}
