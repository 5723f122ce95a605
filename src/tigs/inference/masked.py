"""mask-seq2seq and mask-selfattn: models that read the template and write the whole sentence (paper, section 5.2).

The answer is a beam with the template forced, as for the paper's figures. The same beam unforced shows how often the model
fails to reproduce the template by itself (paper, section 5.5).
"""

from __future__ import annotations

from torch import Tensor

from tigs.config import MethodConfig
from tigs.data.batch import concatenate
from tigs.inference.free_beam import write_freely
from tigs.inference.gradient import own_copy, search_mode
from tigs.inference.interfaces import FillResult, SequenceModel, Templates
from tigs.inference.seq2seq import BeamInfiller


class MaskedInfiller:
    """Beam search under P(sentence | x, template)."""

    def __init__(self, model: SequenceModel, settings: MethodConfig, *, forbidden: Tensor) -> None:
        self.model, self.settings = model, settings
        self.beam = BeamInfiller(model, settings, forbidden=forbidden, backward=False)

    def fill(self, templates: Templates) -> list[FillResult]:
        """With the template forced."""
        return self.beam.fill(_with_template_as_context(templates))

    def write_freely(self, templates: Templates) -> list[tuple[int, ...]]:
        """What the model writes by itself."""
        with search_mode():
            read = _with_template_as_context(own_copy(templates))
            return write_freely(self.model, read, width=self.settings.beam_width)


def _with_template_as_context(templates: Templates) -> Templates:
    return templates._replace(context=concatenate(templates.context, templates.target))
