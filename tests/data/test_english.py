from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tigs.data.english import tokenize
from tigs.data.special import SPECIAL_TOKENS

# Any text, and text that is mostly the pieces whose order matters.
PIECES = [
    "don",
    "t",
    "s",
    "I",
    "Ve",
    "em",
    "'",
    "’",
    "`",
    " ",
    "\n",
    "_",
    "☃",
    "é",
    "-",
    "--",
    ".",
    "..",
    "u.s.",
    "a.m.",
]
PIECES += ["1.5", "2:30", "$", "%", ",", '"', "“", "。", "…", "\x7f", "İ", "<pad>", "<", ">", "</s>"]
TEXTS = st.text() | st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # Two styles of apostrophe, spaced and not, with odd capitals behind (DailyDialog).
        ("I don't know", "i don't know"),
        ("I don ’ t know", "i don't know"),
        ("I don ' t know", "i don't know"),
        ("I ’ Ve been", "i've been"),
        ("It ’ S Jane ’ s , you ’ Re late", "it's jane's , you're late"),
        ("we'll , he ’ ll , I ’ m , she ’ d , o ’ clock , Ma ’ am", "we'll , he'll , i'm , she'd , o'clock , ma'am"),
        ("the ` old ´ way", "the ' old ' way"),
        # A quotation is no contraction.
        ("he said ‘ hello ’ twice", "he said ' hello ' twice"),
        ("“ Yes ” , « no »", '" yes " , " no "'),
        # Sentences without a space between (both English corpora).
        ("You're right.But how", "you're right . but how"),
        ("I finished it.I loved it!So good", "i finished it . i loved it ! so good"),
        # Full-width marks.
        ("OK 。 Yes、no", "ok . yes , no"),
        ("Ｈｅｌｌｏ！", "hello !"),
        # A control character, line breaks, zero-width spaces.
        ("good\x7f day\u200b\nsir\t", "good day sir"),
        # Numbers, times, prices, abbreviations.
        ("at 2:30 p.m. for $1,000.50", "at 2:30 p.m. for $ 1,000.50"),
        ("50% of 3.5 / 10/12", "50% of 3.5 / 10/12"),
        ("the U.S. army, e.g. this", "the u.s. army , e.g. this"),
        ("£5 or €6", "£ 5 or € 6"),
        # Hyphens, dashes and dots.
        ("push-ups — well -- so----what", "push-ups - well -- so -- what"),
        ("wait . . . what...... eh…", "wait . . . what ... eh ..."),
        # Signs that are no words.
        ("love it 😀👍🏽 ♥", "love it"),
        ("don😀't_stop", "don't stop"),
        ("a <blank> b </s> <unk>", "a blank b / s unk"),
        ("", ""),
        ("☃ _ ☃", ""),
    ],
)
def test_oddities_of_the_real_corpora(text, tokens):
    assert tokenize(text) == tuple(tokens.split())


@pytest.mark.parametrize("ending", ["s", "t", "m", "d", "re", "ve", "ll"])
@pytest.mark.parametrize("apostrophe", ["'", "’", "‘", "`", "´", "′", "＇"])
def test_every_spelling_of_a_contraction_is_one_token(ending, apostrophe):
    for before in ("", " ", "  ", "\n"):
        for behind in ("", " "):
            assert tokenize(f"We{before}{apostrophe}{behind}{ending.capitalize()} .") == (f"we'{ending}", ".")


@settings(max_examples=400)
@given(TEXTS)
def test_tokens_tokenised_again_stay_as_they_are(text):
    tokens = tokenize(text)
    assert tokenize(" ".join(tokens)) == tokens


@settings(max_examples=200)
@given(TEXTS)
def test_a_token_is_never_empty_spaced_upper_case_or_special(text):
    for token in tokenize(text):
        assert token
        assert token.split() == [token]
        assert token == token.lower()
        assert token not in SPECIAL_TOKENS
