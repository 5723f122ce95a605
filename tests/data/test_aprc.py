from __future__ import annotations

import csv
import gzip
import json
from collections import Counter

import pyarrow
import pyarrow.parquet
import pytest

from tigs.config import DataConfig
from tigs.data.corpora import pairs
from tigs.data.corpora.aprc import NO_WORDS, clean, find_files, read
from tigs.data.corpora.pairs import SPLITS
from tigs.data.english import tokenize

REVIEWS = [
    "I loved it.I will buy it again!",
    'A "quoted" word\nand a second line',
    "Tom &amp;amp; Jerry&#39;s &quot;best&quot; book",
    "Great<br />lamp, see <a href='http://x.y/z'>this</a>",
    "[[VIDEOID:moABC123]] it works, look at https://example.com/a?b=c and www.shop.com/x",
    "I LOVED it. I will buy it again !",  # the first once more
    "!!! 5 ... 😀",
    "",
    "too " * 40 + "long",
    "Short one",
]
KEPT = {
    "i loved it . i will buy it again !",
    'a " quoted " word and a second line',
    'tom & jerry\'s " best " book',
    "great lamp , see this",
    "it works , look at and",
    "short one",
}
DROPPED = Counter({pairs.DUPLICATE: 1, NO_WORDS: 2, pairs.TARGET_TOO_LONG: 1})
SETTINGS = DataConfig(max_target_length=36)


def write_json_lines(path, field="reviewText"):
    path.write_text("".join(json.dumps({field: text, "overall": None}) + "\n" for text in REVIEWS), encoding="utf-8")


def write_gzip(path):
    lines = "".join(json.dumps({"reviewText": text}) + "\n" for text in REVIEWS)
    path.write_bytes(gzip.compress(lines.encode()))


def write_csv(path):
    with path.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["stars", "review_body", "title"])
        rows.writerows([5, text, "title, with comma"] for text in REVIEWS)


def write_parquet(path):
    table = pyarrow.table({"label": [1] * len(REVIEWS), "content": REVIEWS, "title": [""] * len(REVIEWS)})
    pyarrow.parquet.write_table(table, path)


@pytest.fixture(
    params=[
        ("reviews.jsonl", write_json_lines),
        ("reviews.json", write_json_lines),
        ("reviews.json.gz", write_gzip),
        ("reviews.jsonl.gz", write_gzip),
        ("reviews.csv", write_csv),
        ("train-00000-of-00004.parquet", write_parquet),
    ],
    ids=lambda layout: layout[0],
)
def folder(request, tmp_path):
    name, write = request.param
    write(tmp_path / name)
    return tmp_path


def texts(corpus):
    return {" ".join(pair.target) for pairs in corpus.splits.values() for pair in pairs}


def test_every_layout_gives_the_same_clean_sentences(folder):
    corpus = read(find_files(folder), SETTINGS)
    assert texts(corpus) == KEPT
    assert all(pair.context == () for split in SPLITS for pair in corpus.splits[split])


def test_what_is_dropped_is_counted_by_reason_and_adds_up(folder):
    corpus = read(find_files(folder), SETTINGS)
    assert corpus.dropped == DROPPED
    assert len(texts(corpus)) + sum(corpus.dropped.values()) == len(REVIEWS)


@pytest.mark.parametrize("field", ["reviewText", "review_body", "text", "content"])
def test_the_text_is_found_under_the_names_that_releases_gave_it(tmp_path, field):
    write_json_lines(tmp_path / "reviews.jsonl", field)
    assert texts(read(find_files(tmp_path), SETTINGS)) == KEPT


def test_a_review_without_text_is_counted_not_refused(tmp_path):
    (tmp_path / "reviews.jsonl").write_text('{"reviewText": null}\n{"reviewText": "Fine"}\n', encoding="utf-8")
    corpus = read(find_files(tmp_path), SETTINGS)
    assert texts(corpus) == {"fine"}
    assert corpus.dropped == {NO_WORDS: 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5 &lt; 6 &amp;lt;b&amp;gt;bold&amp;lt;/b&amp;gt;", "5 6 bold"),  # tags that were escaped twice
        ("a<p class='x'>b", "a b"),
        ("I &lt;3 this", "i 3 this"),
        ("see HTTP://A.B/c, now", "see now"),
        ("[[ASIN:B000123 the lamp]] shines", "shines"),
        ("[[videoid:abc]]well", "well"),
        ("[not a video]", "not a video"),
    ],
)
def test_markup_and_links_go_and_words_stay(text, words):
    assert tokenize(clean(text)) == tuple(words.split())


def test_the_order_of_files_changes_nothing_and_a_repeated_review_stands_in_one_split(tmp_path, as_sets):
    settings = DataConfig(test_share=0.3, validation_share=0.3)
    for name, numbers in (("a.jsonl", range(150)), ("b.jsonl", range(100, 250))):
        lines = [json.dumps({"text": f"review number {number}"}) + "\n" for number in numbers]
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    files = find_files(tmp_path)
    one, other = read(files, settings), read(files[::-1], settings)
    assert one.dropped == other.dropped == {pairs.DUPLICATE: 50}
    assert as_sets(one) == as_sets(other)
    assert sum(map(len, one.splits.values())) == 250
    assert all(one.splits.values())


def test_files_stand_at_any_depth_and_the_downloads_own_note_is_none_of_them(tmp_path):
    (tmp_path / "raw" / "books").mkdir(parents=True)
    write_csv(tmp_path / "raw" / "books" / "reviews.csv")
    for name in ("downloaded.json", "README.md", "reviews.txt"):
        (tmp_path / name).write_text("{}", encoding="utf-8")
    assert [path.name for path in find_files(tmp_path)] == ["reviews.csv"]
