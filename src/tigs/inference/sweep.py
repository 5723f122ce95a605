"""Tune methods fairly: settings are tried on templates of the validation split, made as test sets are from the test split."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import torch

from tigs.composition import to_plain
from tigs.config import Config
from tigs.console import say
from tigs.data.batch import pad
from tigs.data.corpora.pairs import Pair
from tigs.data.datamodule import PredictDataModule, TemplateBatch
from tigs.data.prepare import PreparedData
from tigs.data.special import UNK
from tigs.data.test_sets import TestItem, TestSet, make_test_sets
from tigs.data.vocabulary import Vocabulary
from tigs.errors import ConfigError, EvaluationError
from tigs.inference.interfaces import SequenceModel
from tigs.inference.methods import models_of
from tigs.inference.module import InferenceModule
from tigs.inference.predictions import Prediction
from tigs.inference.required import checkpoint_path, load_models, models_for, require_models
from tigs.inference.score import sentence_nll
from tigs.inference.sweep_results import Figures, Result, Row, Subject, add_result, criterion, read_results
from tigs.inference.sweep_settings import Setting
from tigs.progress import track
from tigs.training.checkpoint import LoadedModel, identify, load_model, require_fit, require_kind

EVALUATOR = "evaluator"
# Of a stored NLL: what machines and batches differ in is left out.
_DIGITS = 6


def validation_sets(
    config: Config, prepared: PreparedData, *, n_templates: int, cells: Sequence[str] = ()
) -> list[TestSet]:
    """Templates of validation sentences, chosen and cut by the code and the seed that make the test sets.

    Args:
        config: strategies, ratios and the seed.
        prepared: the data; a split with fewer sentences gives all it has.
        n_templates: for each cell.
        cells: names such as `random-25`; all if there are none.

    Raises:
        ConfigError: for a cell that the configuration does not make.
    """
    if n_templates < 1:
        raise ConfigError(f"--templates {n_templates} leaves nothing to fill", remedy="It must be at least 1")
    split = prepared.split("validation")
    pairs = (Pair(*map(_tokens, texts)) for texts in zip(split["context"], split["target"], strict=True))
    made = make_test_sets(pairs, replace(config.test_sets, size=n_templates))
    names = [test_set.name for test_set in made]
    unknown = [cell for cell in cells if cell not in names]
    if unknown:
        raise ConfigError(f"--cells: there is no cell '{unknown[0]}'", remedy=f"Choose from: {', '.join(names)}")
    return [test_set for test_set in made if not cells or test_set.name in cells]


def sweep(settings: Sequence[Setting], prepared: PreparedData, test_sets: Sequence[TestSet], path: Path) -> list[Row]:
    """Every setting on every cell, in one process; what the file holds already is not searched again.

    Args:
        settings: they may differ in the method and its options only.
        prepared: the data of all of them.
        test_sets: made by `validation_sets`.
        path: of the results; each is added as soon as it is known.

    Raises:
        TigsError: if a model is missing or does not fit, if an option does not fit the models, or if results cannot be kept.
    """
    known = read_results(path)
    items = [item for test_set in test_sets for item in test_set.items]
    models = _load([setting.config for setting in settings], prepared, items)
    hashes = {
        name: identify(checkpoint_path(settings[0].config, name), model.description)["hash"]
        for name, model in models.items()
    }
    # All of them before the first search, so that what cannot be built is refused at once.
    searches = [_Search.make(setting.config, models, prepared.vocabulary) for setting in settings]
    rows = []
    for number, (setting, search) in enumerate(zip(settings, searches, strict=True), start=1):
        results, n_new = [], 0
        for test_set in test_sets:
            subject = _subject(setting.config, hashes, test_set)
            found = next((result for result in known if result.subject == subject), None)
            if found is None:
                found = Result(
                    subject, len(test_set.items), setting.config.test_sets.seed, search.run(test_set, setting.label)
                )
                add_result(path, found)
                n_new += 1
            results.append(found)
        rows.append(Row(setting, tuple(results)))
        _say_row(rows[-1], f"[{number}/{len(settings)}]", n_new)
    return rows


def _load(configs: Sequence[Config], prepared: PreparedData, items: Sequence[TestItem]) -> dict[str, LoadedModel]:
    """The models of all methods, and the evaluator if it is trained, each on its device."""
    by_method = {config.method.name: config for config in configs}
    for method in by_method:
        if not models_of(method):
            raise ConfigError(f"the method {method} has nothing to tune", remedy="Leave it out of the sweep")
    require_models(configs[0], list(by_method))
    models: dict[str, LoadedModel] = {}
    for config in by_method.values():
        models |= load_models(config, prepared, items)
    path = checkpoint_path(configs[0], EVALUATOR)
    if path.is_file():
        evaluator = load_model(path)
        require_kind(evaluator.description, path, task=configs[0].task.name, model=EVALUATOR)
        require_fit(evaluator.description, prepared, path)
        evaluator.network.double()  # as `tigs eval` scores
        models[EVALUATOR] = evaluator
    use_gpu = configs[0].trainer.accelerator != "cpu" and torch.cuda.is_available()
    for model in models.values():
        model.network.to("cuda" if use_gpu else "cpu")
    return models


@dataclass(frozen=True)
class _Search:
    """A method with its options, ready to fill."""

    config: Config
    module: InferenceModule
    evaluator: SequenceModel | None
    vocabulary: Vocabulary
    device: torch.device

    @classmethod
    def make(cls, config: Config, models: Mapping[str, LoadedModel], vocabulary: Vocabulary) -> _Search:
        networks = {name: models[name].network for name in models_for(config.method.name)}
        module = InferenceModule(config.method, networks, vocabulary, seed=config.seed)
        evaluator = cast(SequenceModel, models[EVALUATOR].network) if EVALUATOR in models else None
        device = next(networks["forward"].parameters()).device
        return cls(config, module, evaluator, vocabulary, device)

    def run(self, test_set: TestSet, label: str) -> Figures:
        """Fill the templates of a cell, in the batches of `tigs eval`."""
        data = PredictDataModule(self.config, test_set.items)
        loader = data.predict_dataloader()
        predictions: list[Prediction] = []
        scores: list[float] = []
        for loaded in track(loader, f"{label} {test_set.name}", total=len(loader)):
            batch = data.transfer_batch_to_device(loaded, self.device, 0)
            filled = self.module.predict_step(batch, 0)
            predictions += filled
            if self.evaluator is not None:
                scores += self._evaluate(self.evaluator, batch, filled)
        return _figures(predictions, scores)

    def _evaluate(self, evaluator: SequenceModel, batch: TemplateBatch, filled: Sequence[Prediction]) -> list[float]:
        """The NLL of each filled sentence of a batch."""
        sentences = pad([self.vocabulary.encode(prediction.sentence) for prediction in filled]).to(self.device)
        totals = sentence_nll(evaluator, batch.context, sentences)  # (batch)
        if not totals.isfinite().all():
            raise EvaluationError(
                f"{checkpoint_path(self.config, EVALUATOR)}: the evaluator gives a sentence an NLL that is no number",
                remedy="Delete its folder and train it again with a lower trainer.learning_rate",
            )
        return totals.tolist()


def _figures(predictions: Sequence[Prediction], scores: Sequence[float]) -> Figures:
    n_tokens = sum(len(prediction.template) + 1 for prediction in predictions)  # with </s>
    fills = [word for prediction in predictions for word in prediction.fill]

    def per_token(totals: Iterable[float]) -> float:
        return round(math.fsum(totals) / n_tokens, _DIGITS)

    # Only a method without a model has none of the two.
    return Figures(
        forward_nll=per_token(cast(float, prediction.forward_nll) for prediction in predictions),
        evaluator_nll=per_token(scores) if scores else None,
        own_nll=per_token(cast(float, prediction.nll) for prediction in predictions),
        unk_share=fills.count(UNK) / len(fills),
        model_steps=statistics.fmean(prediction.model_steps for prediction in predictions),
        seconds=round(statistics.fmean(prediction.seconds for prediction in predictions), _DIGITS),
    )


def _subject(config: Config, hashes: Mapping[str, str], test_set: TestSet) -> Subject:
    used = (*models_for(config.method.name), EVALUATOR)
    return Subject(
        method=to_plain(config.method),
        seed=config.seed,
        checkpoints={name: content for name, content in hashes.items() if name in used},
        cell=test_set.name,
        templates=test_set.hash,
    )


def _say_row(row: Row, place: str, n_new: int) -> None:
    n_cells = len(row.results)
    kept = "" if n_new == n_cells else f" ({n_cells - n_new} of {n_cells} cells from before)"
    say(f"{place} {row.setting.label}: NLL {row.mean(criterion([row])):.4f}{kept}")


def _tokens(text: str) -> tuple[str, ...]:
    return tuple(text.split(" ")) if text else ()
