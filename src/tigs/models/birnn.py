"""A decoder that sees both sides of each position but never the position itself (paper, section 2; Berglund et al. 2015).

The prediction of `y_t` comes from the left-to-right state before t and the right-to-left state after t. Three heads: the joint
one, P(y_t | all others, x), for GSN, and one per direction for BiBS.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from tigs.data.batch import Batch, Padded
from tigs.data.special import END_ID, PAD_ID, START_ID
from tigs.models.attention import build_encoder, encode
from tigs.models.autoregressive import Recurrent
from tigs.models.decoder import Decoder, DecoderState
from tigs.models.lstm import reverse
from tigs.models.nll import NLL, projected_nll


class HeadStates(NamedTuple):
    """What each head projects, (batch, time, hidden), time running over the tokens of `y` (no `</s>`)."""

    joint: Tensor
    left_to_right: Tensor
    right_to_left: Tensor


class Reader(Recurrent):
    """One of the two decoders with its head. No module: its weights stand in the network under their old names."""

    def __init__(self, network: BiRNN, *, decoder: Decoder, projection: nn.Linear, first_token: int) -> None:
        self.embedding, self.dropout, self.encoder = network.embedding, network.dropout, network.encoder
        self.decoder, self.projection, self.first_token = decoder, projection, first_token


class BiRNN(nn.Module):
    """Two decoders over the same sentence, one from each end."""

    def __init__(self, *, n_tokens: int, hidden: int, layers: int, dropout: float, has_context: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, hidden, padding_idx=PAD_ID)
        self.dropout = nn.Dropout(dropout)
        self.encoder = build_encoder(n_tokens, hidden=hidden, layers=layers, dropout=dropout) if has_context else None
        self.left_to_right = Decoder(hidden=hidden, layers=layers, dropout=dropout, has_context=has_context)
        self.right_to_left = Decoder(hidden=hidden, layers=layers, dropout=dropout, has_context=has_context)
        self.joint_layer = nn.Linear(2 * hidden, hidden)
        self.joint_projection = nn.Linear(hidden, n_tokens)
        self.left_to_right_projection = nn.Linear(hidden, n_tokens)
        self.right_to_left_projection = nn.Linear(hidden, n_tokens)

    @property
    def left_reader(self) -> Reader:
        """Predicts each word from those before it."""
        projection = self.left_to_right_projection
        return Reader(self, decoder=self.left_to_right, projection=projection, first_token=START_ID)

    @property
    def right_reader(self) -> Reader:
        """Predicts each word from those after it; reads reversed sentences.

        It starts at `</s>`, so that it knows the end as the other knows `<s>`.
        """
        projection = self.right_to_left_projection
        return Reader(self, decoder=self.right_to_left, projection=projection, first_token=END_ID)

    def start_both(self, context: Padded) -> tuple[DecoderState, DecoderState]:
        """Both readers' states before their first token; the context is encoded once."""
        memory, summary = encode(self.encoder, context)
        n_rows = len(context.lengths)
        return self.left_to_right.start(n_rows, memory, summary), self.right_to_left.start(n_rows, memory, summary)

    def joint_outputs(self, left: Tensor, right: Tensor) -> Tensor:
        """(..., hidden) what the joint head projects, from both readers' outputs (..., hidden) for the same word."""
        return self.dropout(torch.tanh(self.joint_layer(torch.cat([left, right], dim=-1))))

    def joint_log_probabilities(self, outputs: Tensor) -> Tensor:
        """log P(y_t | all others, x): (..., vocabulary), from joint outputs (..., hidden)."""
        return torch.log_softmax(self.joint_projection(outputs), dim=-1)

    def joint_nll(self, outputs: Tensor, targets: Tensor) -> NLL:
        """NLL of targets (tokens) given all others, from joint outputs (tokens, hidden)."""
        return projected_nll(outputs, self.joint_projection, targets)

    def head_states(self, context: Padded, target: Padded) -> HeadStates:
        """What the heads see at each position of the target."""
        left_state, right_state = self.start_both(context)
        left, right = self.left_reader, self.right_reader
        left_outputs, _ = left.run(left_state, target.shifted(left.first_token))  # (batch, time, hidden)
        right_outputs, _ = right.run(right_state, target.reversed.shifted(right.first_token))
        right_outputs = reverse(right_outputs, target)
        return HeadStates(self.joint_outputs(left_outputs, right_outputs), left_outputs, right_outputs)

    def forward(self, batch: Batch) -> dict[str, NLL]:
        """NLL of the targets by each head (`</s>` has none); training minimises the sum. The joint one is a pseudo-likelihood."""
        states = self.head_states(batch.context, batch.target)
        mask = batch.target.mask
        targets = batch.target.ids[mask]  # (tokens)
        return {
            "nll": self.joint_nll(states.joint[mask], targets),
            "nll_left_to_right": self.left_reader.nll(states.left_to_right[mask], targets),
            "nll_right_to_left": self.right_reader.nll(states.right_to_left[mask], targets),
        }
