"""The only importer of wandb. Offline unless the user is logged in or `WANDB_MODE` says otherwise; never a prompt, never a crash."""

from __future__ import annotations

import hashlib
import logging
import netrc
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pytorch_lightning.loggers import WandbLogger

from tigs.config import Config, to_plain
from tigs.console import say

PROJECT = "tigs"


def mode() -> str:
    """`online`, `offline` or `disabled`."""
    chosen = os.environ.get("WANDB_MODE")
    if chosen:
        return {"dryrun": "offline", "run": "online"}.get(chosen, chosen)
    return "online" if _is_logged_in() else "offline"


def make_logger(config: Config, *, name: str, job_type: str, folder: Path) -> WandbLogger | None:
    """A logger for one run, or none when W&B is disabled.

    Args:
        config: goes into the run whole.
        name: of the run.
        job_type: `train` or `eval`.
        folder: what the run is about; the same folder continues the same run.
    """
    if mode() == "disabled":
        return None
    import wandb

    # W&B's own chatter, and a warning about a setting that Lightning always passes.
    logging.getLogger("wandb").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=".*anonymous setting.*")
    group = f"{config.task.name}/{config.profile}"
    settings = wandb.Settings(silent=True, console="off", init_timeout=30)
    directory = Path(config.output_dir).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    arguments: dict[str, Any] = {
        "project": os.environ.get("WANDB_PROJECT", PROJECT),
        "name": name,
        "id": hashlib.blake2b(str(folder.resolve()).encode(), digest_size=6).hexdigest(),
        "save_dir": str(directory),
        "group": group,
        "job_type": job_type,
        "config": to_plain(config),
        "settings": settings,
    }
    logger = WandbLogger(**arguments, offline=mode() == "offline", resume="allow")
    try:
        _ = logger.experiment
    except wandb.errors.Error as error:
        say(f"W&B cannot be reached ({type(error).__name__}); this run is kept offline, `wandb sync` sends it later")
        logger = WandbLogger(**arguments, offline=True, resume="allow")
    return logger


def log_table(logger: WandbLogger | None, key: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Show a table in the run."""
    if logger is not None:
        logger.log_table(key=key, columns=list(columns), data=[list(row) for row in rows])


def finish() -> None:
    """End the run of this process, so that the next one does not write into it."""
    if mode() != "disabled":
        import wandb

        wandb.finish(quiet=True)


def _is_logged_in() -> bool:
    if os.environ.get("WANDB_API_KEY"):
        return True
    host = urlparse(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname or ""
    try:
        return netrc.netrc().authenticators(host) is not None
    except (FileNotFoundError, netrc.NetrcParseError):
        return False
