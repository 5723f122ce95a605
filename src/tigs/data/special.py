"""The five special tokens, named once. They take the first ids of every vocabulary, in this order."""

from __future__ import annotations

PAD = "<pad>"
UNK = "<unk>"
START = "<s>"
END = "</s>"
BLANK = "<blank>"

SPECIAL_TOKENS = (PAD, UNK, START, END, BLANK)

PAD_ID, UNK_ID, START_ID, END_ID, BLANK_ID = range(len(SPECIAL_TOKENS))
