from __future__ import annotations

import pytest
import torch

from tigs.config import MethodConfig, ModelConfig
from tigs.inference.gradient import gradients, input_gradient, own_copy, search_mode
from tigs.inference.interfaces import Templates
from tigs.inference.p_step import Suffix
from tigs.inference.start import Started
from tigs.inference.tigs import Tigs, _Search
from tigs.inference.words import forbidden_words
from tigs.models.build import build_model

from .worlds import Case, together


@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_gradients_flow_whatever_mode_the_caller_is_in(around):
    weight = torch.nn.Parameter(torch.randn(3, 3))
    with around(), search_mode():
        values = torch.ones(2, 3) * 2
        assert not (weight * values[0]).requires_grad
        with gradients():
            inputs = values.clone().requires_grad_()
            loss = (inputs @ weight).pow(2).sum()
            gradient = input_gradient(loss, inputs)
        assert not gradient.requires_grad
        assert not (weight * values[0]).requires_grad
    torch.testing.assert_close(gradient, 2 * (values @ weight @ weight.t()).detach())
    assert weight.grad is None


def test_cudnn_is_off_inside_and_on_again_outside():
    before = torch.backends.cudnn.enabled
    with search_mode(), gradients():
        assert not torch.backends.cudnn.enabled
    assert torch.backends.cudnn.enabled == before


def test_a_copy_can_take_part_in_gradients():
    with torch.inference_mode():
        templates = together([Case("a", [7], [5, 4, 6]), Case("b", [], [4])])
        with search_mode():
            copy = own_copy(templates)
    assert templates.target.ids.is_inference()
    for own, theirs in zip((*copy.context, *copy.target), (*templates.context, *templates.target), strict=True):
        assert not own.is_inference()
        assert torch.equal(own, theirs)
    assert copy.ids == templates.ids


@pytest.mark.parametrize("has_context", [True, False])
@pytest.mark.parametrize("penalties", [{}, {"penalty": 0.2, "nearest_penalty": 0.1}])
def test_the_gradient_is_that_of_finite_differences(has_context, penalties):
    """Of the mean NLL with penalties, by moving each number of a blank's vector a little, over the whole sentence."""
    torch.manual_seed(0)
    n_tokens, size = 15, 6
    sizes = ModelConfig(name="forward", hidden=size, layers=2, dropout=0.0)
    network = build_model(sizes, n_tokens=n_tokens, has_context=has_context).double().eval().requires_grad_(False)
    cases = [
        Case("a", [7, 8] if has_context else [], [4, 6, 4, 9, 4]),
        Case("b", [9] if has_context else [], [5, 6, 4]),
    ]
    templates = together(cases)
    words = torch.tensor([[5, 6, 7, 9, 11], [5, 6, 12, 0, 0]])
    settings = MethodConfig(n_candidates=3, optimiser="sgd", step_size=1.0, **penalties)
    method = Tigs(
        network,
        lambda own: Started(words.clone(), torch.zeros_like(own.target.lengths)),
        settings,
        forbidden=forbidden_words(n_tokens, allow_unk=False),
    )
    with search_mode():
        search = _Search(method, templates)
        # Away from the words, where a penalty has a corner.
        vectors = network.word_vectors[words[:, 2]] + 0.1 * torch.randn(2, size, dtype=torch.double)
        state = network.start(templates.context)
        _, state = network.run(state, torch.cat([torch.full((2, 1), 2), words[:, :2]], dim=1))
        rows = torch.arange(2)
        places = torch.full_like(rows, 2)
        suffix = Suffix.after(templates.target._replace(ids=words), places)
        search.vectors[:, 2] = vectors
        search._o_step(rows, places, state, suffix)
        found = vectors - search.vectors[:, 2]
    for row, case in enumerate(cases):
        for number in range(size):
            moved = vectors.clone()
            losses = []
            for change in (1e-5, -1e-5):
                moved[row, number] = vectors[row, number] + change
                losses.append(plain_loss(network, case, words[row, : len(case.template)], moved[row], settings))
            assert found[row, number].item() == pytest.approx((losses[0] - losses[1]) / 2e-5, abs=1e-7)


def plain_loss(network, case, words, vector, settings):
    table = network.embedding.weight
    inputs = torch.cat([table[[2]], table[words]])
    inputs[3] = vector
    outputs, _ = network.run(network.start(together([case]).context), inputs[None])
    targets = torch.cat([words, torch.tensor([3])])
    nll = torch.nn.functional.cross_entropy(network.projection(outputs[0]), targets)
    distance = (vector - table).norm(dim=1).min()
    return (nll + settings.penalty * vector.norm() + settings.nearest_penalty * distance).item()


def test_templates_are_turned_and_cut_without_loss():
    templates = together([Case("a", [7, 8, 9], [5, 4, 6]), Case("b", [9], [4, 5]), Case("c", [], [4])])
    assert templates.reversed.target.ids.tolist() == [[6, 4, 5], [5, 4, 0], [4, 0, 0]]
    part = templates.part(1, 3)
    assert isinstance(part, Templates)
    assert part.ids == ("b", "c")
    assert part.target.ids.tolist() == [[4, 5], [4, 0]]
    assert part.context.ids.tolist() == [[9], [0]]
    assert templates.fills(torch.tensor([[5, 11, 6], [12, 5, 0], [13, 0, 0]])) == [(11,), (12,), (13,)]
