"""An evaluation as W&B keeps it offline: the figures, what explains them, and the table of fills."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tigs.composition import compose
from tigs.inference.predictions import predictions_folder, read_predictions


def test_an_offline_evaluation_can_be_read_back_with_its_figures_and_fills(trained, tmp_path):
    words = [*trained("poetry", "forward", "evaluator"), "test_sets.ratios=[0.5]", "eval.limit=4", "method=seq2seq-f"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WANDB")}
    environment |= {"HOME": str(tmp_path)}
    command = [sys.executable, "-m", "tigs", "eval", *words]
    ran = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "wandb" not in ran.stdout + ran.stderr
    config = compose(words)
    folder = Path(config.output_dir)
    (run,) = (folder / "wandb").glob("offline-run-*")
    inspect = [str(Path(sys.executable).with_name("wandb")), "leet", "inspect", "--json", str(run)]
    records = subprocess.run(
        inspect, env=environment, capture_output=True, text=True, timeout=120, check=True
    ).stdout.replace("\\", "")
    metrics = json.loads((folder / "poetry/small/metrics/seq2seq-f/random-50.json").read_text())
    for fact in ("poetry/small", "eval", "seq2seq-f", "beam_width", "test_set_hashes", "git_revision"):
        assert fact in records, fact
    for name in ("nll", "bleu_xy", "bleu_y", "forward_nll", "exact_match", "seconds"):
        assert f"{name}/random-50" in records, name
        assert f"{name}/middle-50" in records, name
    for value in (metrics["figures"]["nll"]["value"], metrics["figures"]["bleu_y"]["value"]):
        assert str(round(value, 6)) in records
    assert metrics["checkpoints"]["forward"]["hash"] in records
    assert "seconds_per_sentence" in records
    (table,) = run.glob("files/media/table/*.table.json")
    content = json.loads(table.read_text())
    assert content["columns"][:6] == ["set", "id", "context", "template", "reference", "sentence"]
    files = [predictions_folder(config) / f"{name}.jsonl" for name in ("random-50", "middle-50")]
    expected = {(file.stem, prediction.id) for file in files for prediction in read_predictions(file).predictions}
    assert {(row[0], row[1]) for row in content["data"]} == expected
