"""What must hold for the networks, whatever their weights are."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tigs.config import MODELS
from tigs.data.batch import Batch, pad
from tigs.data.special import END_ID, START_ID

N_TOKENS = 23
STEPWISE = ("forward", "backward", "mask-seq2seq", "mask-selfattn")
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


def _read(model, batch):
    """Log-probabilities of the whole sentence in one run, (batch, time, vocabulary)."""
    target = batch.target.reversed if getattr(model, "reads_backward", False) else batch.target
    inputs, targets, mask = target.bracketed()
    outputs, _ = model.run(model.start(batch.context), inputs)
    return model.log_probabilities(outputs), inputs, targets, mask


@pytest.mark.parametrize("has_context", [True, False])
@pytest.mark.parametrize("name", STEPWISE)
@torch.no_grad()
def test_nll_is_the_sum_of_the_targets_log_probabilities(make_model, make_batch, name, has_context):
    model, batch = make_model(name, has_context=has_context), make_batch(name, has_context=has_context)
    log_probabilities, _, targets, mask = _read(model, batch)
    expected = -log_probabilities[mask].gather(1, targets[mask][:, None]).squeeze(1)
    torch.testing.assert_close(model(batch)["nll"].per_token, expected, **TOLERANCE)
    assert len(expected) == batch.n_tokens


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", STEPWISE)
@torch.no_grad()
def test_stepping_and_suffixes_and_vectors_equal_the_whole_run(make_model, make_batch, name, layers):
    model, batch = make_model(name, layers=layers), make_batch(name)
    whole, inputs, _, _ = _read(model, batch)
    state = model.start(batch.context)
    for position in range(inputs.shape[1]):
        outputs, after = model.step(state, inputs[:, position])
        torch.testing.assert_close(model.log_probabilities(outputs), whole[:, position], **TOLERANCE)
        by_vector, _ = model.step(state, model.embed(inputs[:, position]))
        torch.testing.assert_close(by_vector, outputs, **TOLERANCE)
        suffix, _ = model.run(state, inputs[:, position:])
        torch.testing.assert_close(model.log_probabilities(suffix), whole[:, position:], **TOLERANCE)
        state = after


@pytest.mark.parametrize("name", STEPWISE)
@torch.no_grad()
def test_selecting_rows_of_a_state_equals_reading_those_rows(make_model, make_batch, name):
    model, batch = make_model(name), make_batch(name)
    rows = torch.tensor([2, 0, 0, 1])
    _, inputs, _, _ = _read(model, batch)
    _, state = model.run(model.start(batch.context), inputs[:, :3])
    chosen, _ = model.step(state.select(rows), inputs[rows, 3])
    everything, _ = model.step(state, inputs[:, 3])
    torch.testing.assert_close(chosen, everything[rows], **TOLERANCE)


@pytest.mark.parametrize("name", STEPWISE)
@torch.no_grad()
def test_a_causal_prediction_never_depends_on_later_tokens(make_model, make_batch, name):
    model, batch = make_model(name), make_batch(name)
    before, inputs, _, _ = _read(model, batch)
    for position in range(1, inputs.shape[1]):
        changed = inputs.clone()
        changed[:, position] = (changed[:, position] + 1) % N_TOKENS
        outputs, _ = model.run(model.start(batch.context), changed)
        after = model.log_probabilities(outputs)
        torch.testing.assert_close(after[:, :position], before[:, :position], **TOLERANCE)
        assert not torch.allclose(after[:, position], before[:, position], atol=1e-4)


@pytest.mark.parametrize("has_context", [True, False])
@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_a_batch_equals_its_sentences_one_by_one_so_padding_never_changes_a_loss(
    make_model, make_batch, name, has_context
):
    model, batch = make_model(name, has_context=has_context), make_batch(name, has_context=has_context)
    together = model(batch)
    alone = [
        model(Batch(_row(batch.context, number), _row(batch.target, number)))
        for number in range(len(batch.target.lengths))
    ]
    for head, nll in together.items():
        torch.testing.assert_close(nll.per_token, torch.cat([single[head].per_token for single in alone]), **TOLERANCE)


def _row(padded, number):
    return pad([padded.ids[number, : padded.lengths[number]].tolist()])


@torch.no_grad()
def test_a_backward_model_on_reversed_text_is_a_forward_model(make_model, make_batch):
    forward, backward = make_model("forward"), make_model("backward")
    backward.load_state_dict(forward.state_dict())
    batch = make_batch("forward")
    mirrored = Batch(batch.context, batch.target.reversed)
    torch.testing.assert_close(backward(mirrored)["nll"].per_token, forward(batch)["nll"].per_token)


@torch.no_grad()
def test_the_context_matters_where_there_is_one(make_model, make_batch):
    model, batch = make_model("forward"), make_batch("forward")
    other = Batch(make_batch("forward", seed=1).context, batch.target)
    assert not torch.allclose(model(batch)["nll"].total, model(other)["nll"].total)


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_gets_a_gradient(make_model, make_batch, name):
    model = make_model(name)
    torch.stack([nll.total for nll in model(make_batch(name)).values()]).sum().backward()
    without = [key for key, value in model.named_parameters() if value.grad is None or not value.grad.abs().sum() > 0]
    assert without == []


@pytest.mark.parametrize("name", STEPWISE)
def test_the_gradient_of_an_input_vector_equals_finite_differences(make_model, make_batch, name):
    model, batch = make_model(name).double().requires_grad_(False), make_batch(name, lengths=(6,))
    inputs, targets, _ = batch.target.bracketed()
    embedded = model.embed(inputs)

    def loss(vector):
        changed = torch.cat([embedded[:, :3], vector[:, None], embedded[:, 4:]], dim=1)
        outputs, _ = model.run(model.start(batch.context), changed)
        return F.nll_loss(model.log_probabilities(outputs[0]), targets[0], reduction="sum")

    assert torch.autograd.gradcheck(loss, (embedded[:, 3].clone().requires_grad_(),))


@pytest.mark.parametrize("name", ["forward", "birnn", "mask-selfattn"])
def test_dropout_is_active_in_training_only(make_model, make_batch, name):
    model, batch = make_model(name, dropout=0.5), make_batch(name)
    with torch.no_grad():
        assert torch.equal(model(batch)["nll"].total, model(batch)["nll"].total)
        model.train()
        assert not torch.equal(model(batch)["nll"].total, model(batch)["nll"].total)


def test_bracketing_puts_the_special_tokens_where_a_decoder_expects_them(make_batch):
    inputs, targets, mask = make_batch("forward", lengths=(2, 4)).target.bracketed()
    assert (inputs[:, 0] == START_ID).all()
    assert targets[0, 2] == END_ID
    assert targets[1, 4] == END_ID
    assert mask.sum().item() == 3 + 5
