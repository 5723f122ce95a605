"""From a method's name to the object that fills: one table. The one place that knows which model each method needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from torch import Tensor, nn

from tigs.config import MethodConfig
from tigs.errors import ConfigError
from tigs.inference.bibs import Bibs
from tigs.inference.gsn import Gsn
from tigs.inference.interfaces import Infiller
from tigs.inference.masked import MaskedInfiller
from tigs.inference.seq2seq import BeamInfiller, BothWays
from tigs.inference.start import Start, make_start
from tigs.inference.template import LeaveBlank
from tigs.inference.tigs import Tigs
from tigs.inference.words import forbidden_words


class Parts(NamedTuple):
    """What a method may be put together from."""

    settings: MethodConfig
    networks: Mapping[str, Any]
    forbidden: Tensor
    seed: int

    @property
    def start(self) -> Start:
        """What the settings say, of the forward model; the same words for every method with the same settings."""
        return make_start(self.settings, self.networks["forward"], forbidden=self.forbidden, seed=self.seed)


class Method(NamedTuple):
    """Models that must be trained, and how the method is made of them."""

    models: tuple[str, ...]
    make: Callable[[Parts], Infiller]


def _beam(parts: Parts, model: str) -> Infiller:
    return BeamInfiller(parts.networks[model], parts.settings, forbidden=parts.forbidden, backward=model == "backward")


def _masked(parts: Parts) -> Infiller:
    return MaskedInfiller(parts.networks[parts.settings.name], parts.settings, forbidden=parts.forbidden)


def _tigs(parts: Parts) -> Infiller:
    return Tigs(parts.networks["forward"], parts.start, parts.settings, forbidden=parts.forbidden)


METHODS: dict[str, Method] = {
    "tigs": Method(("forward",), _tigs),
    "tigs-plus": Method(("forward",), _tigs),
    "seq2seq-f": Method(("forward",), lambda parts: _beam(parts, "forward")),
    "seq2seq-b": Method(("backward",), lambda parts: _beam(parts, "backward")),
    "seq2seq-fb": Method(
        ("forward", "backward"), lambda parts: BothWays(_beam(parts, "forward"), _beam(parts, "backward"))
    ),
    "birnn-gsn": Method(
        ("forward", "birnn"),
        lambda parts: Gsn(
            parts.networks["birnn"], parts.start, parts.settings, forbidden=parts.forbidden, seed=parts.seed
        ),
    ),
    "birnn-bibs": Method(
        ("forward", "birnn"),
        lambda parts: Bibs(parts.networks["birnn"], parts.start, parts.settings, forbidden=parts.forbidden),
    ),
    "mask-seq2seq": Method(("mask-seq2seq",), _masked),
    "mask-selfattn": Method(("mask-selfattn",), _masked),
    "template": Method((), lambda parts: LeaveBlank()),
}


# Their answers come out of one beam.
_BEAM_METHODS = ("seq2seq-f", "seq2seq-b", "seq2seq-fb", "mask-seq2seq", "mask-selfattn")


def models_of(method: str) -> tuple[str, ...]:
    """The models that must be trained before a method can fill."""
    return METHODS[method].models


def build_infiller(settings: MethodConfig, networks: Mapping[str, nn.Module], *, seed: int) -> Infiller:
    """The method that the settings name, on networks in eval mode, whose parameters are frozen on the way.

    Args:
        settings: the method and its options.
        networks: by the names of `models_of(settings.name)`.
        seed: of random starts and of sampling.
    """
    if settings.n_best > settings.beam_width and settings.name in _BEAM_METHODS:
        raise ConfigError(
            f"method.n_best={settings.n_best} asks for more fills than method.beam_width={settings.beam_width} keeps",
            remedy="Raise method.beam_width, which is part of the method, or lower method.n_best",
        )
    forbidden = Tensor()
    for network in networks.values():
        # Frozen, so that a gradient forms with respect to inputs alone.
        network.requires_grad_(False)
    if networks:
        table = next(iter(networks.values())).get_parameter("embedding.weight")
        forbidden = forbidden_words(len(table), allow_unk=settings.allow_unk, device=table.device)
    return METHODS[settings.name].make(Parts(settings, networks, forbidden, seed))
