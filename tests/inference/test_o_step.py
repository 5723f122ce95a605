from __future__ import annotations

import itertools

import pytest
import torch

from tigs.config import MethodConfig
from tigs.inference.o_step import OptimiserState, o_step, penalty_gradient

SIZE = 5


# With a momentum of 0 torch's Nesterov is refused; it is plain gradient descent then.
CHOICES = {
    ("nesterov", 0.9): lambda vector: torch.optim.SGD([vector], lr=0.7, momentum=0.9, nesterov=True),
    ("nesterov", 0.5): lambda vector: torch.optim.SGD([vector], lr=0.7, momentum=0.5, nesterov=True),
    ("nesterov", 0.0): lambda vector: torch.optim.SGD([vector], lr=0.7),
    ("sgd", 0.9): lambda vector: torch.optim.SGD([vector], lr=0.7),
    ("adam", 0.9): lambda vector: torch.optim.Adam([vector], lr=0.7),
}


@pytest.mark.parametrize(("optimiser", "momentum"), CHOICES)
def test_each_blank_moves_as_torch_would_move_it(optimiser, momentum):
    """Blanks are visited in turn and some sentences leave; each blank keeps its own memory."""
    settings = MethodConfig(optimiser=optimiser, momentum=momentum, step_size=0.7)
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(3, 4, SIZE, generator=generator)  # (batch, longest, size)
    memory = OptimiserState.fresh(vectors)
    own = {place: vectors[place].clone().requires_grad_() for place in itertools.product(range(3), range(4))}
    theirs = {place: CHOICES[optimiser, momentum](vector) for place, vector in own.items()}
    for rows in ([0, 1, 2], [2, 0], [1], [0, 1, 2], [2, 0]):
        for position in (1, 3):
            gradient = torch.randn(len(rows), SIZE, generator=generator)
            places = torch.tensor(rows)
            vectors[places, position] = o_step(vectors[places, position], gradient, memory, places, position, settings)
            for row, own_gradient in zip(rows, gradient, strict=True):
                own[row, position].grad = own_gradient.clone()
                theirs[row, position].step()
    for place, vector in own.items():
        torch.testing.assert_close(vectors[place], vector.detach(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("penalty", "nearest_penalty"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.7), (0.3, 0.7)])
def test_penalties_are_the_gradient_of_their_formula(penalty, nearest_penalty):
    settings = MethodConfig(penalty=penalty, nearest_penalty=nearest_penalty)
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(20, SIZE, generator=generator, dtype=torch.double)
    vectors = torch.randn(6, SIZE, generator=generator, dtype=torch.double, requires_grad=True)
    distances = (vectors[:, None] - table).norm(dim=2).min(dim=1).values  # (rows)
    loss = penalty * vectors.norm(dim=1).sum() + nearest_penalty * distances.sum()
    (expected,) = torch.autograd.grad(loss, vectors)
    torch.testing.assert_close(penalty_gradient(vectors.detach(), table, settings), expected)


def test_penalties_are_still_where_their_length_is_zero():
    """A fresh vector lies on a word, and the vector of a word may be 0."""
    table = torch.randn(8, SIZE)
    table[3] = 0.0
    settings = MethodConfig(penalty=1.0, nearest_penalty=1.0)
    gradient = penalty_gradient(table, table, settings)
    assert gradient.isfinite().all()
    torch.testing.assert_close(gradient, torch.nn.functional.normalize(table, dim=1))
