"""mask-seq2seq and mask-selfattn: models that read the template and write the whole sentence (paper, section 5.2).

The answer is a beam with the template forced, as for the paper's figures. The same beam unforced shows how often the model
fails to reproduce the template by itself (paper, section 5.5).
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from tigs.config import MethodConfig
from tigs.data.batch import concatenate
from tigs.inference.beam import beam_search
from tigs.inference.free_beam import write_freely
from tigs.inference.gradient import own_copy, search_mode
from tigs.inference.interfaces import FillResult, SequenceModel, Templates
from tigs.inference.seq2seq import beam_results


class MaskedInfiller:
    """Beam search under P(sentence | x, template)."""

    def __init__(self, model: SequenceModel, settings: MethodConfig, *, forbidden: Tensor) -> None:
        self.model, self.settings, self.forbidden = model, settings, forbidden

    def fill(self, templates: Templates) -> list[FillResult]:
        """The forced answer, and beside it what the model writes by itself."""
        with search_mode():
            templates = own_copy(templates)
            templates = templates._replace(context=concatenate(templates.context, templates.target))
            beams = beam_search(
                self.model,
                templates,
                width=max(self.settings.beam_width, self.settings.n_best),
                forbidden=self.forbidden,
                score_known=self.settings.score_known,
            )
            results = beam_results(templates, beams, n_best=self.settings.n_best)
            written = write_freely(self.model, templates, width=self.settings.beam_width)
        return [replace(result, unforced=words) for result, words in zip(results, written, strict=True)]
