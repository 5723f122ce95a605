"""The only importer of wandb. Offline unless the user is logged in or `WANDB_MODE` says otherwise; never a prompt."""

from __future__ import annotations

import netrc
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import wandb
from pytorch_lightning.loggers import WandbLogger
from pytorch_lightning.utilities.rank_zero import rank_zero_only

from tigs.composition import to_plain
from tigs.config import Config
from tigs.console import say
from tigs.errors import TrackingError

PROJECT = "tigs"


def mode() -> str:
    """`online`, `offline` or `disabled`."""
    chosen = {"dryrun": "offline", "run": "online"}.get(os.environ.get("WANDB_MODE", ""), os.environ.get("WANDB_MODE"))
    if chosen in ("offline", "disabled"):
        return chosen
    # Online without a key would end in a prompt.
    return "online" if _is_logged_in() else "offline"


def is_first_process() -> bool:
    """Whether this is the one process that prints and tracks."""
    return getattr(rank_zero_only, "rank", 0) == 0


def project() -> str:
    """The W&B project that all runs go to."""
    return os.environ.get("WANDB_PROJECT", PROJECT)


def entity() -> str:
    """Whose project it is: `WANDB_ENTITY`, or the user who is logged in."""
    return os.environ.get("WANDB_ENTITY") or str(_reached(lambda: wandb.Api().default_entity))


def save_workspace(workspace: Any) -> str:
    """Send a workspace; returns its address."""
    return str(_reached(lambda: workspace.save().url))


def make_logger(config: Config, *, name: str, job_type: str, folder: Path, variant: str = "") -> WandbLogger | None:
    """A logger for one run, or none when W&B is disabled.

    Args:
        config: goes into the run whole.
        name: of the run.
        job_type: `train` or `eval`.
        folder: what the run is about; the same folder continues the same run.
        variant: tells runs of the same folder apart.
    """
    if mode() == "disabled" or not is_first_process():
        return None
    directory = Path(config.output_dir).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    arguments: dict[str, Any] = {
        "project": project(),
        "name": name,
        "id": _run_id(folder) + variant,
        "dir": str(directory),
        "group": f"{config.task.name}/{config.profile}",
        "job_type": job_type,
        "config": to_plain(config),
        "settings": wandb.Settings(silent=True, console="off", init_timeout=30),
    }
    # The run is made here and not by Lightning, which passes a setting that W&B answers with a warning every time.
    if mode() == "online":
        try:
            return WandbLogger(experiment=wandb.init(**arguments, mode="online", resume="allow"))
        except wandb.errors.Error as error:
            say(
                f"W&B cannot be reached ({type(error).__name__}); this run is kept offline, `wandb sync` sends it later"
            )
    return WandbLogger(experiment=wandb.init(**arguments, mode="offline"))


def log_table(logger: WandbLogger, key: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Show a table in the run."""
    logger.log_table(key=key, columns=list(columns), data=[list(row) for row in rows])


def log_result(logger: WandbLogger, *, config: Mapping[str, Any], summary: Mapping[str, float]) -> None:
    """What a run is and came to, for the columns of W&B's table of runs; a value given again replaces the old one."""
    logger.experiment.config.update(dict(config), allow_val_change=True)
    logger.experiment.summary.update(dict(summary))


def finish() -> None:
    """End the run of this process, so that the next one does not write into it."""
    wandb.finish()


def _reached(ask: Callable[[], Any]) -> Any:
    """The answer of W&B's server."""
    try:
        return ask()
    except (wandb.errors.Error, OSError, ValueError) as error:
        raise TrackingError(
            f"W&B gives no answer ({type(error).__name__}: {str(error).splitlines()[0]})",
            remedy="Check the network and `wandb login`; the runs are kept on disk meanwhile",
        ) from error


def _is_logged_in() -> bool:
    if os.environ.get("WANDB_API_KEY"):
        return True
    host = urlparse(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname or ""
    file = Path(os.environ.get("NETRC", "~/.netrc")).expanduser()
    try:
        return netrc.netrc(str(file)).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False


def _run_id(folder: Path) -> str:
    """The same for a training that goes on, another for one that starts anew."""
    file = folder / "wandb_id.txt"
    if not file.is_file():
        file.write_text(uuid.uuid4().hex[:12] + "\n", encoding="utf-8")
    return file.read_text(encoding="utf-8").strip()
