"""Figures and predictions on disk, invented once for all tests of reports."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tigs.report.experiment import load_experiments
from tigs.report.page import write_page

_SPEC = importlib.util.spec_from_file_location("synthetic", Path(__file__).with_name("synthetic.py"))
synthetic = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(synthetic)

# Of `aprc` some figures are missing, and there is a method that the paper does not know.
FEW = ("template", "seq2seq-f", "birnn-gsn", "tigs", "tigs-plus")
SKIPPED = {("birnn-gsn", "random-75"), ("birnn-gsn", "middle-75")}


@pytest.fixture(scope="session")
def write_experiment():
    def write(*arguments, **settings):
        with synthetic.few_resamples():
            synthetic.write_experiment(*arguments, **settings)

    return write


@pytest.fixture(scope="session")
def load():
    """Load experiments; what was not compared yet is compared with few resamples."""

    def load_quickly(root):
        with synthetic.few_resamples():
            return load_experiments(root)

    return load_quickly


@pytest.fixture(scope="session")
def runs(tmp_path_factory, write_experiment, load):
    """What `output_dir` would hold; tests only read it."""
    root = tmp_path_factory.mktemp("runs")
    write_experiment(root, "poetry", n=24)
    write_experiment(root, "aprc", n=24, methods=FEW, skip=SKIPPED)
    load(root)  # writes the comparisons
    return root


@pytest.fixture(scope="session")
def experiments(runs):
    return {experiment.task: experiment for experiment in load_experiments(runs)}


@pytest.fixture(scope="session")
def page_path(runs):
    """The page of all experiments, written once."""
    return write_page(runs)
