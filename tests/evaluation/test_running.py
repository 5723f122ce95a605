"""Figures that grow batch by batch are those of everything at once, in one process and in two."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu
import torch
from torch.nn import functional

from tigs.evaluation.running import RunningBleu, RunningNLL


def sentences(n):
    draw = random.Random(0)
    return [
        {
            "hypothesis": draw.choices("abcd", k=draw.randint(3, 12)),
            "reference": draw.choices("abcd", k=draw.randint(3, 12)),
            "nll": [draw.uniform(0, 9) for _ in range(draw.randint(1, 9))],
        }
        for _ in range(n)
    ]


def expected(seen):
    hypotheses, references = ([" ".join(one[side]) for one in seen] for side in ("hypothesis", "reference"))
    values = [value for one in seen for value in one["nll"]]
    bleu = sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none", force=True).score / 100
    return {"nll": sum(values) / len(values), "bleu": bleu}


def test_nll_is_the_mean_cross_entropy_of_all_tokens():
    logits, targets = torch.randn(50, 11), torch.randint(11, (50,))
    metric = RunningNLL()
    for part in (slice(0, 7), slice(7, 30), slice(30, 50)):
        metric.update(functional.cross_entropy(logits[part], targets[part], reduction="none"))
    assert metric.compute().item() == pytest.approx(functional.cross_entropy(logits, targets).item(), abs=1e-6)


def test_bleu_of_batches_is_sacrebleus_of_all():
    seen = sentences(30)
    metric = RunningBleu()
    for first in range(0, 30, 7):
        batch = seen[first : first + 7]
        metric.update([one["hypothesis"] for one in batch], [one["reference"] for one in batch])
    assert metric.compute().item() == pytest.approx(expected(seen)["bleu"])


def test_what_was_seen_can_be_forgotten():
    metric = RunningNLL()
    metric.update(torch.ones(3))
    metric.reset()
    metric.update(torch.full((2,), 5.0))
    assert metric.compute().item() == 5.0


def test_a_million_tokens_lose_no_digits():
    values = torch.rand(1000, 1000, generator=torch.Generator().manual_seed(0)) * 9
    metric = RunningNLL()
    for batch in values:
        metric.update(batch)
    assert metric.compute().item() == pytest.approx(math.fsum(values.flatten().tolist()) / 1e6, rel=1e-12)


def test_two_processes_together_see_what_one_would(tmp_path):
    seen = sentences(21)
    (tmp_path / "sentences.json").write_text(json.dumps(seen))
    script = Path(__file__).parent / "two_processes.py"
    running = [
        subprocess.Popen([sys.executable, str(script), str(rank), "2", str(tmp_path)], stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    for process in running:
        _, complaint = process.communicate(timeout=120)
        assert process.returncode == 0, complaint.decode()
    of_all = expected([*seen[::2][:-3], *seen[1::2]])
    assert of_all != expected(seen)
    for rank in range(2):
        assert json.loads((tmp_path / f"{rank}.json").read_text()) == pytest.approx(of_all, abs=1e-6)
