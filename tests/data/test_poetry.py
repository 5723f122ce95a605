from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from tigs.config import DataConfig
from tigs.data.corpora.pairs import SPLITS, Pair
from tigs.data.corpora.poetry import DUPLICATE_QUATRAIN, NOT_FOUR_LINES, UNCLEAN_TEXT, UNEVEN_LINES, find_files, read

FIVE = ["白日依山盡，黃河入海流。", "欲窮千里目，更上一層樓。"]
SEVEN = ["朝辭白帝彩雲間，千里江陵一日還。", "兩岸猿聲啼不住，輕舟已過萬重山。"]
EIGHT = ["國破山河在，城春草木深。", "感時花濺淚，恨別鳥驚心。", "烽火連三月，家書抵萬金。", "白頭搔更短，渾欲不勝簪。"]
CHARACTERS = "春江花月夜山高水長天地人心風雨雲雪日落歸來去年今何處"


def write(folder, **files):
    """`tang_0=[poem, ...]` becomes `全唐诗/poet.tang.0.json`; a poem is its list of couplets."""
    for name, poems in files.items():
        path = folder / "全唐诗" / f"poet.{name.replace('_', '.')}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([{"paragraphs": couplets} for couplets in poems]), encoding="utf-8")
    return folder


def read_all(folder, **settings):
    return read(find_files(folder), DataConfig(**settings))


def kept(corpus):
    return {pair for pairs in corpus.splits.values() for pair in pairs}


def pair(*couplets):
    return Pair(tuple(couplets[0]), tuple(couplets[1]))


def invent(generator, n_couplets):
    return [
        "".join(generator.choices(CHARACTERS, k=5)) + "，" + "".join(generator.choices(CHARACTERS, k=5)) + "。"
        for _ in range(n_couplets)
    ]


def test_the_first_couplet_is_the_context_of_the_second(tmp_path):
    corpus = read_all(write(tmp_path, tang_0=[FIVE], song_1000=[SEVEN]))
    assert kept(corpus) == {pair(*FIVE), pair(*SEVEN)}
    assert not corpus.dropped


def test_marks_are_tokens_of_their_own_and_stay_as_they_are(tmp_path):
    poem = ["春眠不覺曉？處處聞啼鳥！", "夜來風雨聲；花落知多少。"]
    assert kept(read_all(write(tmp_path, tang_0=[poem]))) == {pair(*poem)}


def test_a_missing_final_mark_is_put_back(tmp_path):
    assert kept(read_all(write(tmp_path, tang_0=[[FIVE[0], FIVE[1].rstrip("。")]]))) == {pair(*FIVE)}


def test_lines_may_be_cut_into_paragraphs_anyhow_and_hold_spaces(tmp_path):
    poem = ["白日依山盡，", " 黃河入海流。\n", "欲窮千里目，更上", "一層樓。"]
    assert kept(read_all(write(tmp_path, tang_0=[poem]))) == {pair(*FIVE)}


def test_a_character_beyond_the_basic_plane_is_one_token(tmp_path):
    poem = [FIVE[0].replace("盡", "\U00020021"), FIVE[1]]
    (only,) = kept(read_all(write(tmp_path, tang_0=[poem])))
    assert len(only.context) == 12


@pytest.mark.parametrize(
    ("poem", "reason"),
    [
        (FIVE[:1], NOT_FOUR_LINES),
        ([*FIVE, *SEVEN[:1]], NOT_FOUR_LINES),
        ([*EIGHT, *EIGHT], NOT_FOUR_LINES),
        ([], NOT_FOUR_LINES),
        ([FIVE[0], SEVEN[1]], UNEVEN_LINES),
        ([FIVE[0].replace("白日", "日"), FIVE[1]], UNEVEN_LINES),
        (["白日山盡，黃河海流。", "欲窮里目，更上層樓。"], UNEVEN_LINES),
        ([FIVE[0].replace("山", "□"), FIVE[1]], UNCLEAN_TEXT),
        ([FIVE[0].replace("山", "（一作海）"), FIVE[1]], UNCLEAN_TEXT),
        ([FIVE[0].replace("山", "{山"), FIVE[1]], UNCLEAN_TEXT),
        ([FIVE[0].replace("山", "x"), FIVE[1]], UNCLEAN_TEXT),
        ([FIVE[0].replace("山", "\ud800"), FIVE[1]], UNCLEAN_TEXT),
    ],
)
def test_a_poem_that_is_not_a_clean_quatrain_is_dropped_under_its_reason(tmp_path, poem, reason):
    corpus = read_all(write(tmp_path, tang_0=[SEVEN, poem]))
    assert kept(corpus) == {pair(*SEVEN)}
    assert corpus.dropped == {reason: 1}


def test_an_eight_line_poem_is_two_quatrains_or_none(tmp_path):
    write(tmp_path, tang_0=[EIGHT])
    assert kept(read_all(tmp_path)) == {pair(*EIGHT[:2]), pair(*EIGHT[2:])}
    without = read_all(tmp_path, split_eight_lines=False)
    assert not kept(without)
    assert without.dropped == {NOT_FOUR_LINES: 1}


def test_a_quatrain_that_stands_twice_is_kept_once_whatever_its_marks(tmp_path):
    again = [couplet.replace("，", "；") for couplet in FIVE]
    corpus = read_all(write(tmp_path, tang_0=[FIVE, SEVEN], song_0=[again, FIVE, [*FIVE, *EIGHT[:2]]]))
    assert len(kept(corpus)) == 3
    assert corpus.dropped == {DUPLICATE_QUATRAIN: 3}


def test_rejected_and_copied_files_are_never_read(tmp_path):
    folder = write(tmp_path, tang_0=[FIVE])
    rejected = json.dumps([{"paragraphs": SEVEN}])
    for name in ("error/poet.tang.0.json", "poet.song.0.simplified.json", "authors.tang.json", "表面结构字.json"):
        path = folder / "全唐诗" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(rejected, encoding="utf-8")
    assert [path.name for path in find_files(folder)] == ["poet.tang.0.json"]
    assert kept(read_all(folder)) == {pair(*FIVE)}


def test_a_corpus_below_a_folder_named_error_is_read(tmp_path):
    assert len(find_files(write(tmp_path / "error" / "corpus", tang_0=[FIVE]))) == 1


@pytest.fixture
def shared_quatrains(tmp_path):
    """Two files that share quatrains: alone in one; as half of a longer poem or with other marks in the other."""
    generator = random.Random(7)
    alone = [invent(generator, 2) for _ in range(150)]
    longer = [[*poem, *invent(generator, 2)] for poem in alone[:75]]
    marked = [[couplet.replace("，", "；") for couplet in poem] for poem in alone[75:]]
    return write(tmp_path, tang_0=alone, song_0=longer + marked)


def test_the_order_of_files_changes_neither_pairs_nor_splits(shared_quatrains, as_sets):
    files, settings = find_files(shared_quatrains), DataConfig(test_share=0.3, validation_share=0.3)
    one, other = read(files, settings), read(files[::-1], settings)
    assert one.dropped == other.dropped == Counter({DUPLICATE_QUATRAIN: 150})
    assert as_sets(one) == as_sets(other)
    assert all(one.splits[split] for split in SPLITS)


def test_both_halves_of_a_poem_fall_in_the_same_split(tmp_path):
    generator = random.Random(7)
    poems = [invent(generator, 4) for _ in range(100)]
    corpus = read_all(write(tmp_path, tang_0=poems), test_share=0.3, validation_share=0.3)
    split_of = {pair: split for split, pairs in corpus.splits.items() for pair in pairs}
    assert all(split_of[pair(*poem[:2])] == split_of[pair(*poem[2:])] for poem in poems)
    assert set(split_of.values()) == set(SPLITS)
