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
from tigs.models.attention import Encoder
from tigs.models.decoder import Decoder
from tigs.models.lstm import reverse
from tigs.models.nll import NLL, projected_nll


class HeadStates(NamedTuple):
    """What each head projects, (batch, time, hidden), time running over the tokens of `y` (no `</s>`)."""

    joint: Tensor
    left_to_right: Tensor
    right_to_left: Tensor


class BiRNN(nn.Module):
    """Two decoders over the same sentence, one from each end."""

    def __init__(self, *, n_tokens: int, hidden: int, layers: int, dropout: float, has_context: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, hidden, padding_idx=PAD_ID)
        self.dropout = nn.Dropout(dropout)
        self.encoder = (
            Encoder(nn.Embedding(n_tokens, hidden, padding_idx=PAD_ID), hidden=hidden, layers=layers, dropout=dropout)
            if has_context
            else None
        )
        self.left_to_right = Decoder(hidden=hidden, layers=layers, dropout=dropout, has_context=has_context)
        self.right_to_left = Decoder(hidden=hidden, layers=layers, dropout=dropout, has_context=has_context)
        self.joint_layer = nn.Linear(2 * hidden, hidden)
        self.joint_projection = nn.Linear(hidden, n_tokens)
        self.left_to_right_projection = nn.Linear(hidden, n_tokens)
        self.right_to_left_projection = nn.Linear(hidden, n_tokens)

    def head_states(self, context: Padded, target: Padded) -> HeadStates:
        """What the heads see at each position of the target."""
        memory, summary = self.encoder(context) if self.encoder is not None else (None, None)

        def read(decoder: Decoder, tokens: Padded, first: int) -> Tensor:
            # `<s> y_1 ... y_{m-1}`: the last token is never read, as nothing follows it in this direction.
            inputs = torch.cat([torch.full_like(tokens.ids[:, :1], first), tokens.ids[:, :-1]], dim=1)
            state = decoder.start(len(tokens.lengths), memory, summary)
            return decoder.run(state, self.dropout(self.embedding(inputs)))[0]  # (batch, time, hidden)

        left = read(self.left_to_right, target, START_ID)
        # The reader from the right starts at `</s>`, so that it knows the end as the other knows `<s>`.
        right = reverse(read(self.right_to_left, target.reversed, END_ID), target)
        joint = self.dropout(torch.tanh(self.joint_layer(torch.cat([left, right], dim=-1))))
        return HeadStates(joint, left, right)

    def joint_log_probabilities(self, context: Padded, target: Padded) -> Tensor:
        """log P(y_t | all others, x) for every t: (batch, time, vocabulary)."""
        return torch.log_softmax(self.joint_projection(self.head_states(context, target).joint), dim=-1)

    def forward(self, batch: Batch) -> dict[str, NLL]:
        """NLL of the targets by each head (`</s>` has none); training minimises the sum. The joint one is a pseudo-likelihood."""
        states = self.head_states(batch.context, batch.target)
        mask = batch.target.mask
        targets = batch.target.ids[mask]  # (tokens)
        return {
            "nll": projected_nll(states.joint[mask], self.joint_projection, targets),
            "nll_left_to_right": projected_nll(states.left_to_right[mask], self.left_to_right_projection, targets),
            "nll_right_to_left": projected_nll(states.right_to_left[mask], self.right_to_left_projection, targets),
        }
