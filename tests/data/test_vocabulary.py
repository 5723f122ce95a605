from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigs.data.special import BLANK, BLANK_ID, END, END_ID, PAD, PAD_ID, SPECIAL_TOKENS, START, START_ID, UNK, UNK_ID
from tigs.data.vocabulary import Vocabulary
from tigs.errors import DataError

# Whatever a corpus might hold: a token is never empty and never holds the "\n" that ends a line of the file.
TOKENS = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1).filter(
    lambda token: token not in SPECIAL_TOKENS
)
ODD = ["\r", "\x85", "\u2028", "\x0b", "#", "# tigs vocabulary", "don't", "詩", "\U00020000", " ", "\ufeff", "\\n"]


def build(text, **limits):
    return Vocabulary.build([text.split()], **{"size": 100, "min_count": 1, **limits})


def test_special_tokens_have_the_first_ids_in_every_vocabulary():
    vocabulary = build("a b")
    pairs = [(PAD, PAD_ID), (UNK, UNK_ID), (START, START_ID), (END, END_ID), (BLANK, BLANK_ID)]
    assert [vocabulary.encode([token]) for token, _ in pairs] == [[index] for _, index in pairs]
    assert sorted(index for _, index in pairs) == [0, 1, 2, 3, 4]
    assert [*vocabulary.tokens[:5]] == [PAD, UNK, START, END, BLANK]


def test_more_frequent_tokens_come_first_and_ties_go_by_the_token():
    assert build("c b b a d d d c").tokens[5:] == ("d", "b", "c", "a")


@given(st.lists(st.lists(TOKENS, max_size=6), max_size=6), st.randoms())
def test_the_order_of_sentences_plays_no_part(sentences, generator):
    shuffled = list(sentences)
    generator.shuffle(shuffled)
    limits = {"size": 7, "min_count": 1}
    assert Vocabulary.build(sentences, **limits) == Vocabulary.build(shuffled, **limits)


def test_size_counts_without_the_special_tokens():
    vocabulary = build("a a a b b c", size=2)
    assert vocabulary.tokens[5:] == ("a", "b")
    assert len(vocabulary) == 7


def test_rare_tokens_are_left_out():
    assert build("a a a b b c", min_count=2).tokens[5:] == ("a", "b")
    assert build("a a a b b c", min_count=4).tokens == SPECIAL_TOKENS


def test_a_special_token_in_a_text_takes_no_second_id():
    assert build("<s> a </s> <blank> <unk> <pad>").tokens == (*SPECIAL_TOKENS, "a")


def test_an_unknown_token_becomes_unk_and_a_known_one_comes_back():
    vocabulary = build("a b")
    assert vocabulary.decode(vocabulary.encode(["b", "z", "a"])) == ["b", UNK, "a"]


def test_the_hash_tells_order_tokens_and_borders_apart():
    hashes = {Vocabulary(tokens).hash for tokens in (("a", "b"), ("b", "a"), ("a",), ("ab",), ("a", "b", "c"))}
    assert len(hashes) == 5


@given(st.lists(TOKENS | st.sampled_from(ODD), unique=True))
def test_a_saved_vocabulary_is_read_back_whole(tmp_path_factory, tokens):
    vocabulary = Vocabulary(SPECIAL_TOKENS + tuple(tokens))
    path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.txt"
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary


def test_the_file_is_readable_one_token_a_line(tmp_path):
    build("b b 詩").save(tmp_path / "vocabulary.txt")
    header, *tokens = (tmp_path / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    assert header.startswith("# ")
    assert build("b b 詩").hash in header
    assert tokens == [*SPECIAL_TOKENS, "b", "詩"]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b"apple\n", b"apples\n"),
        lambda data: data.replace(b"apple\npear\n", b"pear\napple\n"),
        lambda data: data.removesuffix(b"pear\n"),
        lambda data: data + b"plum\n",
        lambda data: data.replace(b"pear", b"p\xffar"),
        lambda data: data.replace(b"\n", b"\r\n"),
    ],
)
def test_a_changed_file_is_refused(tmp_path, change):
    path = tmp_path / "vocabulary.txt"
    build("apple apple pear").save(path)
    changed = change(path.read_bytes())
    assert changed != path.read_bytes()
    path.write_bytes(changed)
    with pytest.raises(DataError, match=r"vocabulary\.txt: its tokens do not match its hash"):
        Vocabulary.load(path)


@pytest.mark.parametrize("content", [b"", b"a\nb\n", b"\xff\xfe\x00", b"PAR1"])
def test_a_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "vocabulary.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"vocabulary\.txt: not a vocabulary file"):
        Vocabulary.load(path)
