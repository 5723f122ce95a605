"""Amazon product reviews, each a sentence to fill, without context.

The paper's corpus (Dong et al. 2017) is not public in its form, so any reviews serve as a stand-in: JSON lines, plain or gzip,
CSV, or the hub's `fancyzhx/amazon_polarity` as parquet. Splits by a hash of the cleaned text, so a review sent in twice cannot
stand in two of them.
"""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Iterator
from pathlib import Path

from tigs.config import DataConfig
from tigs.data.corpora.files import FETCH_AGAIN, read_json_lines, read_lines, read_parquet, require_files
from tigs.data.corpora.pairs import Corpus, Pair, PairCollector, split_by_hash
from tigs.data.english import tokenize
from tigs.errors import DataError
from tigs.progress import track

LAYOUT = "reviews as *.jsonl, *.json, *.jsonl.gz, *.json.gz, *.csv or *.parquet"
NO_WORDS = "review without words"

_ENDINGS = (".jsonl", ".json", ".jsonl.gz", ".json.gz", ".csv", ".parquet")
# The names that Amazon's releases have given to the text of a review, oldest first.
_TEXT_FIELDS = ("reviewText", "review_body", "text", "content")
_PARQUET_FIELD = "content"

_NOISE = re.compile(r"\[\[(?:VIDEOID|ASIN):?[^\]]*\]\]|<[^<>]{0,200}>|(?:https?://|www\.)\S+", re.IGNORECASE)


def find_files(folder: Path) -> list[Path]:
    """The corpus files below a folder, in a fixed order."""
    files = sorted(path for path in folder.rglob("*") if path.name.endswith(_ENDINGS) and path.is_file())
    return require_files([path for path in files if path.name != "downloaded.json"], folder, LAYOUT)


def read(files: list[Path], settings: DataConfig) -> Corpus:
    """Pairs with an empty context."""
    collector = PairCollector(settings)
    for path in track(files, "Reading the corpus"):
        for text in _reviews(path):
            tokens = tokenize(clean(text))
            if any(token[0].isalpha() for token in tokens):
                collector.add(split_by_hash(" ".join(tokens), settings), Pair((), tokens))
            else:
                collector.drop(NO_WORDS)
    return collector.finish()


def clean(text: str) -> str:
    """Without HTML, links and video tags. Entities are undone twice, because some reviews were escaped twice."""
    return _NOISE.sub(" ", html.unescape(html.unescape(text)))


def _reviews(path: Path) -> Iterator[str]:
    if path.suffix == ".parquet":
        yield from (text or "" for text in read_parquet(path, _PARQUET_FIELD))
    elif path.suffix == ".csv":
        yield from _csv_reviews(path)
    else:
        for number, review in read_json_lines(path):
            name = next((name for name in _TEXT_FIELDS if name in review), None)
            if name is None:
                raise DataError(f"{path} line {number}: no review text", remedy=f"Expected {_one_of_fields()}")
            yield str(review[name] or "")


def _csv_reviews(path: Path) -> Iterator[str]:
    # With its end put back, because a quoted text may go on in the next line.
    rows = csv.reader((line + "\n" for _, line in read_lines(path)), strict=True)
    try:
        header = next(rows)
        name = next((name for name in _TEXT_FIELDS if name in header), None)
        if name is None:
            raise DataError(f"{path} line 1: no column with review texts", remedy=f"Expected {_one_of_fields()}")
        for row in rows:
            if row and len(row) != len(header):
                problem = f"{path} line {rows.line_num}: {len(row)} fields, not {len(header)}"
                raise DataError(problem, remedy=FETCH_AGAIN)
            if row:
                yield row[header.index(name)]
    except csv.Error as error:
        raise DataError(f"{path} line {rows.line_num}: broken CSV ({error})", remedy=FETCH_AGAIN) from error


def _one_of_fields() -> str:
    return "a field named one of: " + ", ".join(_TEXT_FIELDS)
