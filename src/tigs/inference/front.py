"""How far each of some sentences has been read, while a search goes from blank to blank."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tigs.inference.interfaces import JoinableState, SequenceModel


class Front:
    """States in front of one word of each sentence; its words may be replaced before they are read."""

    def __init__(self, model: SequenceModel, state: Any, tokens: Tensor, place: int) -> None:
        """Read `tokens` (rows) from a state before them; what they predict stands at `place`."""
        self.model = model
        self.outputs, self.state = model.step(state, tokens)  # (rows, size)
        self.places = torch.full_like(tokens, place)
        """(rows) of the word that is predicted"""

    @property
    def may_part(self) -> bool:
        """Whether sentences may be read up to different places."""
        return isinstance(self.state, JoinableState)

    def keep(self, rows: Tensor) -> None:
        """Go on with chosen sentences only."""
        self.outputs, self.state, self.places = self.outputs[rows], self.state.select(rows), self.places[rows]

    def read_on(self, words: Tensor, places: Tensor) -> None:
        """Read words (rows, longest) of each sentence up to those at `places` (rows), none of which lies behind."""
        number, pieces = torch.arange(len(places), device=places.device), []
        while not bool((self.places == places[number]).all()):
            here = self.places == places[number]  # (moving)
            if here.any():
                arrived = here.nonzero().squeeze(1)
                pieces.append((number[arrived], self.outputs[arrived], self.state.select(arrived)))
                moving = (~here).nonzero().squeeze(1)
                number = number[moving]
                self.keep(moving)
            self.outputs, self.state = self.model.step(self.state, words[number, self.places])
            self.places = self.places + 1
        if pieces:
            numbers, outputs, states = zip(*pieces, (number, self.outputs, self.state), strict=True)
            order = torch.cat(numbers).argsort()  # (rows)
            self.outputs, self.state = torch.cat(outputs)[order], states[0].join(states[1:]).select(order)
            self.places = places
