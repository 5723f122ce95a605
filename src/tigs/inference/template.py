"""The template method: blanks are left blank (the paper's Template row)."""

from __future__ import annotations

from tigs.data.special import BLANK_ID
from tigs.inference.interfaces import FillResult, Templates


class LeaveBlank:
    """No model, no search."""

    def fill(self, templates: Templates) -> list[FillResult]:
        """`<blank>` for every blank."""
        return [FillResult((BLANK_ID,) * n_blanks, None) for n_blanks in templates.blanks.sum(dim=1).tolist()]
