"""The network that sees both sides of a word, and the two readers it offers to a search."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tigs.data.batch import Padded
from tigs.data.special import END_ID, START_ID
from tigs.models.lstm import reverse

N_TOKENS = 23
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture(params=[(True, 1), (True, 2), (False, 1)], ids=["context", "two-layers", "no-context"])
def problem(request, make_model, make_batch):
    """A network and a batch, with a context or without, of one or two layers."""
    has_context, layers = request.param
    return make_model("birnn", has_context=has_context, layers=layers), make_batch("birnn", has_context=has_context)


def _joint(model, context, target):
    """Log-probabilities (batch, time, vocabulary) of each word given all others."""
    return model.joint_log_probabilities(model.head_states(context, target).joint)


@pytest.mark.parametrize("has_context", [True, False])
@torch.no_grad()
def test_birnn_never_sees_the_token_it_predicts_but_sees_all_others(make_model, make_batch, has_context):
    model, batch = make_model("birnn", has_context=has_context), make_batch("birnn", has_context=has_context)
    before = _joint(model, batch.context, batch.target)
    for row, length in enumerate(batch.target.lengths.tolist()):
        for position in range(length):
            ids = batch.target.ids.clone()
            ids[row, position] = 5 + (ids[row, position] - 4) % (N_TOKENS - 5)
            after = _joint(model, batch.context, Padded(ids, batch.target.lengths))
            torch.testing.assert_close(after[row, position], before[row, position], **TOLERANCE)
            others = [other for other in range(length) if other != position]
            assert not any(torch.allclose(after[row, other], before[row, other], atol=1e-7) for other in others)


@torch.no_grad()
def test_birnn_directional_heads_see_one_side_only(make_model, make_batch):
    model, batch = make_model("birnn"), make_batch("birnn", lengths=(6,))
    before = model.head_states(batch.context, batch.target)
    position = 3
    ids = batch.target.ids.clone()
    ids[0, position] = 5 + (ids[0, position] - 4) % (N_TOKENS - 5)
    after = model.head_states(batch.context, Padded(ids, batch.target.lengths))
    torch.testing.assert_close(
        after.left_to_right[0, : position + 1], before.left_to_right[0, : position + 1], **TOLERANCE
    )
    torch.testing.assert_close(after.right_to_left[0, position:], before.right_to_left[0, position:], **TOLERANCE)
    assert not torch.allclose(after.left_to_right[0, position + 1], before.left_to_right[0, position + 1], atol=1e-6)
    assert not torch.allclose(after.right_to_left[0, position - 1], before.right_to_left[0, position - 1], atol=1e-6)


def _stepped(reader, state, sentences):
    """Outputs (batch, time, hidden) for each word of the sentences, one step after the other."""
    outputs, tokens = [], torch.full_like(sentences.lengths, reader.first_token)
    for position in range(sentences.ids.shape[1]):
        output, state = reader.step(state, tokens)
        outputs.append(output)
        tokens = sentences.ids[:, position]
    return torch.stack(outputs, dim=1)


def _run(reader, state, sentences):
    """The same in one run, fed with vectors."""
    first = torch.full_like(sentences.ids[:, :1], reader.first_token)
    return reader.run(state, reader.word_vectors[torch.cat([first, sentences.ids[:, :-1]], dim=1)])[0]


@pytest.mark.parametrize("read", [_stepped, _run])
@torch.no_grad()
def test_the_readers_see_what_the_heads_see(problem, read):
    model, (context, target) = problem
    states, mask = model.head_states(context, target), target.mask
    left = read(model.left_reader, model.left_reader.start(context), target)
    right = reverse(read(model.right_reader, model.right_reader.start(context), target.reversed), target)
    torch.testing.assert_close(left[mask], states.left_to_right[mask], **TOLERANCE)
    torch.testing.assert_close(right[mask], states.right_to_left[mask], **TOLERANCE)
    joint = torch.tanh(model.joint_layer(torch.cat([left, right], dim=-1)))
    torch.testing.assert_close(joint[mask], states.joint[mask], **TOLERANCE)


@torch.no_grad()
def test_what_the_readers_say_together_and_alone_is_what_the_network_says(problem):
    model, batch = problem
    context, target = batch
    mask, expected = target.mask, model(batch)
    left_state, right_state = model.start_both(context)
    left = _run(model.left_reader, left_state, target)[mask]
    right = reverse(_run(model.right_reader, right_state, target.reversed), target)[mask]
    joint = model.joint_outputs(left, right)
    readers, targets = (model.left_reader, model.right_reader), target.ids[mask]
    for head, outputs, nll, log_probabilities in (
        ("joint", joint, model.joint_nll, model.joint_log_probabilities),
        ("left_to_right", left, readers[0].nll, readers[0].log_probabilities),
        ("right_to_left", right, readers[1].nll, readers[1].log_probabilities),
    ):
        plain = getattr(model, f"{head}_projection")(outputs).log_softmax(dim=-1)  # (tokens, vocabulary)
        per_token = F.nll_loss(plain, targets, reduction="none")
        torch.testing.assert_close(log_probabilities(outputs), plain, **TOLERANCE)
        torch.testing.assert_close(nll(outputs, targets).per_token, per_token, **TOLERANCE)
        by_network = expected["nll" if head == "joint" else f"nll_{head}"]
        torch.testing.assert_close(by_network.per_token, per_token, **TOLERANCE)
        torch.testing.assert_close(by_network.total, per_token.sum(), **TOLERANCE)


@torch.no_grad()
def test_rows_of_a_readers_state_can_be_chosen(problem):
    model, (context, target) = problem
    rows = torch.tensor([2, 0, 0, 1])
    for reader, state in zip((model.left_reader, model.right_reader), model.start_both(context), strict=True):
        everything = _stepped(reader, state, target)
        chosen = _stepped(reader, state.select(rows), Padded(target.ids[rows], target.lengths[rows]))
        torch.testing.assert_close(chosen, everything[rows], **TOLERANCE)


@torch.no_grad()
def test_both_readers_start_from_one_encoding(make_model, make_batch):
    model, batch = make_model("birnn"), make_batch("birnn")
    n_encoded = []
    model.encoder.register_forward_hook(lambda *_: n_encoded.append(1))
    model.start_both(batch.context)
    assert len(n_encoded) == 1


def test_each_reader_starts_at_its_end_of_the_sentence(make_model):
    model = make_model("birnn")
    assert (model.left_reader.first_token, model.right_reader.first_token) == (START_ID, END_ID)


def test_readers_add_nothing_to_what_a_checkpoint_holds(make_model):
    model = make_model("birnn")
    before = list(model.state_dict())
    assert model.left_reader.word_vectors is model.right_reader.word_vectors is model.embedding.weight
    assert list(model.state_dict()) == before
    # Checkpoints of earlier versions have these names.
    heads = {f"{name}_projection" for name in ("joint", "left_to_right", "right_to_left")}
    parts = {"embedding", "encoder", "left_to_right", "right_to_left", "joint_layer"} | heads
    assert {key.partition(".")[0] for key in before} == parts
