"""Run as a program: one of several processes, which sees its own part of the sentences; leaves what it computes in a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from tigs.evaluation.running import RunningBleu, RunningNLL


def main(rank, n_processes, folder):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder / 'meet'}", rank=rank, world_size=n_processes
    )
    sentences = json.loads((folder / "sentences.json").read_text())
    # Parts of different size, in batches of different size.
    own = sentences[rank::n_processes] if rank else sentences[::n_processes][:-3]
    nll, bleu = RunningNLL(), RunningBleu()
    for first in range(0, len(own), 1 + rank):
        batch = own[first : first + 1 + rank]
        nll.update(torch.tensor([value for sentence in batch for value in sentence["nll"]]))
        bleu.update([sentence["hypothesis"] for sentence in batch], [sentence["reference"] for sentence in batch])
    (folder / f"{rank}.json").write_text(json.dumps({"nll": nll.compute().item(), "bleu": bleu.compute().item()}))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
