"""How far each of some sentences has been read, while a search goes from blank to blank."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tigs.inference.interfaces import JoinableState, SequenceModel


class Stop(NamedTuple):
    """Some sentences, each read up to a word that is to be visited."""

    rows: Tensor
    """(visited) which of those that the front began with"""
    places: Tensor
    """(visited)"""
    state: Any
    outputs: Tensor
    """(visited, size) what predicts the word there"""


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

    def stops(self, words: Callable[[Tensor], Tensor], due: Callable[[Tensor], Tensor]) -> Iterator[Stop]:
        """Go through all sentences from left to right; whoever has nothing more to visit is read no further.

        Args:
            words: (chosen, longest) of chosen rows, as they are now.
            due: (chosen, longest) the places of chosen rows that are to be visited, as far as is known now.
        """
        going = torch.arange(len(self.places), device=self.places.device)  # (going) the rows that are still read
        last = torch.full_like(self.places, -1)  # (rows) the place of each that was visited last
        while True:
            waiting = due(going)  # (going, longest)
            waiting = waiting & (torch.arange(waiting.shape[1], device=last.device) > last[going, None])
            still = waiting.any(dim=1).nonzero().squeeze(1)  # (still) into going
            if not len(still):
                return
            if len(still) < len(going):
                going, waiting = going[still], waiting[still]
                self.keep(still)
            places = waiting.int().argmax(dim=1)  # (going) the next of each
            self.read_on(words(going), places if self.may_part else places.amin().expand_as(places))
            here = (places == self.places).nonzero().squeeze(1)  # (visited) into going
            state = self.state if len(here) == len(going) else self.state.select(here)
            last[going[here]] = places[here]
            yield Stop(going[here], places[here], state, self.outputs[here])

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
