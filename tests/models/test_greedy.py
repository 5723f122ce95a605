from __future__ import annotations

import pytest
import torch

from tigs.data.batch import Padded, concatenate, pad
from tigs.data.special import BLANK_ID, SPECIAL_TOKENS
from tigs.models.greedy import fill_left_to_right, fill_one_by_one


def _template(batch):
    ids = batch.target.ids.clone()
    blanks = torch.zeros_like(ids, dtype=torch.bool)
    blanks[:, 1::2] = batch.target.mask[:, 1::2]
    return Padded(ids.masked_fill(blanks, BLANK_ID), batch.target.lengths), blanks


@pytest.mark.parametrize("name", ["forward", "mask-seq2seq", "mask-selfattn", "birnn"])
@torch.no_grad()
def test_only_blanks_change_and_no_special_token_is_filled_in(make_model, make_batch, name):
    model, batch = make_model(name), make_batch("forward")
    template, blanks = _template(batch)
    context = concatenate(batch.context, template) if name.startswith("mask") else batch.context
    fill = fill_one_by_one if name == "birnn" else fill_left_to_right
    filled = fill(model, context, template).ids
    assert torch.equal(filled[~blanks], template.ids[~blanks])
    assert (filled[blanks] >= len(SPECIAL_TOKENS)).all()


@torch.no_grad()
def test_a_single_blank_takes_the_likeliest_word_after_its_prefix(make_model, make_batch):
    model, batch = make_model("forward"), make_batch("forward", lengths=(5,))
    ids = batch.target.ids.clone()
    ids[0, 2] = BLANK_ID
    filled = fill_left_to_right(model, batch.context, Padded(ids, batch.target.lengths)).ids
    inputs, _, _ = batch.target.bracketed()
    outputs, _ = model.run(model.start(batch.context), inputs[:, :3])
    scores = model.log_probabilities(outputs[:, -1])[0]
    best = len(SPECIAL_TOKENS) + int(scores[len(SPECIAL_TOKENS) :].argmax())
    assert filled[0, 2].item() == best


@torch.no_grad()
def test_a_sentence_without_blanks_is_returned_as_it_is(make_model):
    model = make_model("forward", has_context=False)
    template = pad([[6, 7, 8], [9]])
    filled = fill_left_to_right(model, pad([[], []]), template)
    assert torch.equal(filled.ids[template.mask], template.ids[template.mask])
