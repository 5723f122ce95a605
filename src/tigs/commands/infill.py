"""`tigs infill`: fill the gaps of one sentence."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace

from tigs.config import Config
from tigs.console import print_json, print_table
from tigs.data.gapped_text import parse, tokenize
from tigs.errors import ConfigError, InferenceError
from tigs.inference.infill import Answer, infill
from tigs.inference.methods import build_infiller, models_of
from tigs.inference.required import load_for_one_sentence
from tigs.training.checkpoint import LoadedModel


def run(config: Config, options: argparse.Namespace) -> None:
    """Load the models of the method, search, print the sentences."""
    method, task = config.method.name, config.task.name
    if not models_of(method):
        raise ConfigError(f"the method {method} fills nothing", remedy="Choose another, for example method=tigs")
    models = load_for_one_sentence(config)
    model = next(iter(models.values()))
    _require_context(model, options.context, task)
    infiller = build_infiller(
        config.method, {name: loaded.network for name, loaded in models.items()}, seed=config.seed
    )
    answers = infill(
        infiller,
        model.vocabulary,
        replace(config, data=model.config.data),
        context=tokenize(options.context, task),
        pieces=parse(options.text, task),
    )
    if options.json:
        documents = [asdict(answer) | {"nll_per_token": answer.nll_per_token} for answer in answers]
        print_json({"task": task, "method": method, "answers": documents})
        return
    print_table(
        f"{task}, profile {config.profile}, method {method}",
        ("sentence", "NLL", "NLL per token"),
        [(_text(answer, task), f"{answer.nll:.2f}", f"{answer.nll_per_token:.3f}") for answer in answers],
    )


def _require_context(model: LoadedModel, context: str, task: str) -> None:
    if model.description.has_context and not context.strip():
        raise InferenceError(
            f"{task} needs a context, what the sentence answers to", remedy="Give it with --context TEXT"
        )
    if context.strip() and not model.description.has_context:
        raise InferenceError(f"{task} has no contexts", remedy="Leave --context out")


def _text(answer: Answer, task: str) -> str:
    return ("" if task == "poetry" else " ").join(answer.tokens)
