"""Reading published files: every failure names the file and the line, and says what to do."""

from __future__ import annotations

import glob
import gzip
import json
import logging
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any

from tigs.errors import DataError

FETCH_AGAIN = "Fetch the file again from its publisher, or remove it"


def require_folder(folder: Path) -> None:
    """Raise unless the folder exists."""
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder", remedy="Set data.dir (DATA_DIR) to the publisher's files")


def require_files(files: list[Path], folder: Path, layout: str) -> list[Path]:
    """The files, or an error that says how the folder should look."""
    if not files:
        raise DataError(f"{folder}: no corpus files found", remedy=f"Expected {layout}")
    return files


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of every line of a UTF-8 file, plain or gzip (`.gz`)."""
    number = 0
    try:
        with _open(path) as stream:
            for number, raw in enumerate(stream, start=1):
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} line {number}: not valid UTF-8 ({error.reason})", remedy=FETCH_AGAIN) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path} after line {number}: the gzip file is damaged or cut short", remedy=FETCH_AGAIN
        ) from error
    if number == 0:
        raise DataError(f"{path}: the file is empty", remedy=FETCH_AGAIN)


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and object of every line; empty lines are passed over."""
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{path} line {number}: broken JSON ({error.msg})", remedy=FETCH_AGAIN) from error
        if not isinstance(value, dict):
            raise DataError(f"{path} line {number}: not a JSON object", remedy=FETCH_AGAIN)
        yield number, value


def read_json(path: Path) -> Any:
    """One JSON document."""
    text = "\n".join(line for _, line in read_lines(path))
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{path} line {error.lineno}: broken JSON ({error.msg})", remedy=FETCH_AGAIN) from error


def read_parquet(path: Path, column: str) -> Iterator[Any]:
    """The values of one column, through `datasets`, a part of the file at a time."""
    import datasets
    import pyarrow

    datasets.logging.set_verbosity(logging.CRITICAL)  # it would report a damaged file in words of its own
    try:
        # Escaped, because it takes the path for a pattern.
        rows = datasets.load_dataset("parquet", data_files=glob.escape(str(path)), split="train", streaming=True)
        if column not in (rows.features or {}):
            found = ", ".join(rows.features or {}) or "none"
            raise DataError(f"{path}: no column '{column}' (columns: {found})", remedy=FETCH_AGAIN)
        for row in rows.select_columns([column]):
            yield row[column]
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, datasets.exceptions.DatasetsError) as error:
        raise DataError(f"{path}: not a readable parquet file", remedy=FETCH_AGAIN) from error


def _open(path: Path) -> gzip.GzipFile | BufferedReader:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
