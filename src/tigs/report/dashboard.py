"""The comparison of methods as a W&B workspace, described by code. Reads and sends nothing by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tigs.config import Config
from tigs.data.test_sets import set_name
from tigs.errors import ConfigError

_NLL, _BLEU_Y = {"nll": "NLL by the evaluator"}, {"bleu_y": "BLEU-4 over y"}
# What is compared, one section each.
_QUALITIES = _NLL | {"bleu_xy": "BLEU-4 over x ⊕ y"} | _BLEU_Y
_QUALITIES_WITHOUT_CONTEXT = _NLL | {"bleu_references": "BLEU-4 against many references"} | _BLEU_Y
_WITHOUT_CONTEXT = ("aprc",)
_COSTS = {"seconds_per_sentence": "seconds a sentence", "model_steps_per_sentence": "model steps a sentence"}


def comparison_workspace(config: Config, *, entity: str, project: str) -> Any:
    """Bars of every quality by test set, quality against cost, and parallel coordinates of the search's settings."""
    try:
        import wandb_workspaces.expr as expressions
        import wandb_workspaces.reports.v2 as panels
        import wandb_workspaces.workspaces as workspaces
    except ImportError as error:
        raise ConfigError(
            "the package wandb-workspaces is not installed", remedy="Run `pip install 'tigs[dashboard]'`"
        ) from error
    settings = config.test_sets
    sets = [set_name(strategy, ratio) for ratio in settings.ratios for strategy in settings.strategies]
    group = f"{config.task.name}/{config.profile}"
    qualities = _QUALITIES_WITHOUT_CONTEXT if config.task.name in _WITHOUT_CONTEXT else _QUALITIES
    return workspaces.Workspace(
        entity=entity,
        project=project,
        name=f"Methods on {group}",
        sections=[
            *(_bars(workspaces, panels, figure, title, sets) for figure, title in qualities.items()),
            _against_cost(workspaces, panels, sets),
            workspaces.Section(
                name="What explains a difference",
                panels=[_coordinates(panels, sets)],
                is_open=True,
            ),
        ],
        runset_settings=workspaces.RunsetSettings(
            filters=expressions.And(expressions.Metric("JobType") == "eval", expressions.Metric("Group") == group)
        ),
    )


def _bars(workspaces: Any, panels: Any, figure: str, title: str, sets: Sequence[str]) -> Any:
    plots = [panels.BarPlot(title=f"{title}, {name}", metrics=[f"{figure}/{name}"]) for name in sets]
    return workspaces.Section(name=title, panels=plots, is_open=figure == "nll")


def _against_cost(workspaces: Any, panels: Any, sets: Sequence[str]) -> Any:
    plots = [
        panels.ScatterPlot(title=f"{name}: NLL against {words}", x=cost, y=f"nll/{name}", log_x=True)
        for name in sets
        for cost, words in _COSTS.items()
    ]
    return workspaces.Section(name="Quality against cost", panels=plots)


def _coordinates(panels: Any, sets: Sequence[str]) -> Any:
    keys = ("method.n_candidates", "method.max_rounds", "method.step_size", "method.beam_width", "method.temperature")
    columns = [panels.ParallelCoordinatesPlotColumn(metric=panels.Config(key)) for key in keys]
    columns += [panels.ParallelCoordinatesPlotColumn(metric=panels.SummaryMetric(f"nll/{name}")) for name in sets]
    return panels.ParallelCoordinatesPlot(title="Settings and NLL", columns=columns)
