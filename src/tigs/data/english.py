"""English text as lower-case word tokens: one spelling for quotes and apostrophes, one rule for what a word is.

Contractions and hyphenated words stay whole (`don't`, `push-ups`), so a blank is what a reader would call a word.
"""

from __future__ import annotations

import re
import unicodedata

_APOSTROPHES = "’‘`´′＇"
_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys(_APOSTROPHES, "'"),
        **dict.fromkeys("“”„«»", '"'),
        **dict.fromkeys("–—―−", "-"),
        "。": ".",
        "、": ",",
        "…": "...",
    }
)

# What no token can hold, white space included.
_DROPPED = re.compile(r"""[^\w.,!?;:'"()$£€%&/+*=@#-]|_""")

# `don ' t`, `i ' Ve`: an apostrophe set apart from a contraction's ending. The ending decides, so quotation marks stay apart.
_SPACED_CONTRACTION = re.compile(r"(?<=[a-z]) *' *(?=(?:s|t|m|d|re|ve|ll|clock|am)\b)")

_TOKEN = re.compile(
    r"""
    \d+(?:[.,:/]\d+)*%?(?![^\W_])   # 1,000  3.5  2:30  50%, but 1st and 20mm are words
  | (?:[a-z]\.){2,}                 # a.m.  u.s.
  | [^\W_]+(?:['-][^\W_]+)*         # words, don't, push-ups
  | \.{2,} | -{2,}                  # an ellipsis or a dash is one token
  | [.,!?;:'"()$£€%&/+*=@#-]        # any other mark that we keep
    """,
    re.VERBOSE,
)


def tokenize(text: str) -> tuple[str, ...]:
    """The tokens of an English text.

    Example: `tokenize("I ’ Ve to go.But don't")` is `("i've", "to", "go", ".", "but", "don't")`.
    """
    text = unicodedata.normalize("NFKC", text.translate(_CHARACTERS)).translate(_CHARACTERS).lower()
    # First, or an emoji or a line break would keep the parts of a contraction from being seen as neighbours.
    text = _DROPPED.sub(" ", text)
    text = _SPACED_CONTRACTION.sub("'", text)
    return tuple(_shorten_run(token) for token in _TOKEN.findall(text))


def _shorten_run(token: str) -> str:
    """Dots and dashes of any number mean the same: `.....` is `...`, `----` is `--`."""
    if token.startswith(".."):
        return "..."
    return "--" if token.startswith("--") else token
