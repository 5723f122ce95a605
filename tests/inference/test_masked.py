from __future__ import annotations

import pytest
import torch

from tigs.data.batch import concatenate, pad
from tigs.data.special import BLANK_ID, END_ID, PAD_ID, START_ID, UNK_ID
from tigs.inference.free_beam import write_freely

from .markov import N_TOKENS, WORDS, Markov, random_markov
from .worlds import Case, MarkovWorld, together

NEVER_WRITTEN = (PAD_ID, START_ID, BLANK_ID)
masked = pytest.mark.parametrize("method", ["mask-seq2seq", "mask-selfattn"])


def plain_beam(log_probability, *, limit, width):
    """A list of hypotheses (words, score); `</s>` ends one. The best is returned as soon as it has ended, or at the limit."""
    hypotheses = [((), 0.0)]
    for _ in range(limit + 1):
        grown = []
        for words, score in hypotheses:
            if words[-1:] == (END_ID,):
                grown.append((words, score))
                continue
            row = log_probability(words)
            grown += [((*words, word), score + row[word]) for word in range(len(row)) if word not in NEVER_WRITTEN]
        hypotheses = sorted(grown, key=lambda own: -own[1])[:width]
        if hypotheses[0][0][-1] == END_ID:
            return hypotheses[0][0][:-1]
    return hypotheses[0][0]


def reader(model, context):
    @torch.no_grad()
    def log_probability(words):
        outputs, _ = model.run(model.start(pad([context])), torch.tensor([[START_ID, *words]]))
        return model.log_probabilities(outputs[0, -1]).tolist()

    return log_probability


@masked
@pytest.mark.parametrize("width", [1, 3])
def test_unforced_it_writes_what_a_plain_beam_writes(world, method, width):
    model = world.networks[method]
    cases = [*world.cases(5, longest=9), Case("short", world.pairs[0][0], [BLANK_ID])]
    written = world.infiller(method, beam_width=width).write_freely(together(cases))
    for case, words in zip(cases, written, strict=True):
        read = reader(model, [*case.context, END_ID, *case.template])
        assert words == plain_beam(read, limit=len(case.template) + 2, width=width)
        assert not {PAD_ID, START_ID, END_ID, BLANK_ID} & {*words}


def test_the_same_on_chains_that_end_soon_or_late():
    """Beside each other none changes another."""
    lengths = set()
    for seed in range(8):
        model = random_markov(seed, sharpness=1.5)
        cases = [Case(str(n), [WORDS[n % 6]], [BLANK_ID] * (1 + n % 7)) for n in range(14)]
        for width in (1, 2, 5):
            written = write_freely(model, together(cases), width=width)
            expected = [
                plain_beam(reader(model, case.context), limit=len(case.template) + 2, width=width) for case in cases
            ]
            assert written == expected
            lengths |= set(map(len, written))
    assert lengths >= {0, 1, 2, 3, 4, 5}


def test_what_never_ends_stops_a_little_behind_the_template():
    table = torch.full((N_TOKENS, N_TOKENS), 1e-6, dtype=torch.double)
    table[:, WORDS[0]] = 1.0
    model = Markov((table / table.sum(dim=1, keepdim=True))[None])
    cases = [Case(str(length), [], [WORDS[0]] * length) for length in (1, 4, 2)]
    # One more than the longest that is let through, so it is never taken for a sentence of its template's length.
    assert [len(words) for words in write_freely(model, together(cases), width=2)] == [4, 7, 5]


def test_nothing_at_all_may_be_written():
    table = torch.full((N_TOKENS, N_TOKENS), 1e-3, dtype=torch.double)
    table[START_ID, END_ID] = 1.0
    model = Markov((table / table.sum(dim=1, keepdim=True))[None])
    assert write_freely(model, together([Case("", [], [WORDS[0]] * 3)]), width=3) == [()]


@masked
def test_forced_it_reproduces_the_template_whatever_it_would_write(world, method):
    cases = world.cases(10)
    infiller = world.infiller(method, beam_width=2)
    results, written = infiller.fill(together(cases)), infiller.write_freely(together(cases))
    for case, result in zip(cases, results, strict=True):
        sentence = case.filled(result.fill)
        assert len(sentence) == len(case.template)
        assert all(
            own in (token, BLANK_ID) or token == BLANK_ID for own, token in zip(sentence, case.template, strict=True)
        )
        assert BLANK_ID not in sentence
    assert any(
        words != tuple(case.filled(result.fill)) for case, result, words in zip(cases, results, written, strict=True)
    )


@masked
def test_it_reads_the_template(worlds, method):
    """The same words under another template are another matter for it."""
    world = worlds("poetry")
    context, sentence = world.pairs[0]
    templates = [[BLANK_ID, *sentence[1:]], [*sentence[:-1], BLANK_ID], sentence]
    nlls = []
    for number, template in enumerate(templates):
        fill = [word for word, token in zip(sentence, template, strict=True) if token == BLANK_ID]
        nlls.append(world.rescore(method, Case(str(number), context, template), fill)[0])
    (result,) = world.fill(method, [Case("", context, sentence)])
    assert len(set(nlls)) == 3
    assert result.nll == pytest.approx(nlls[2], abs=1e-4)
    joined = concatenate(pad([context]), pad([templates[0]]))
    assert joined.ids[0].tolist() == [*context, END_ID, *templates[0]]


def test_unknown_words_may_be_written_freely_but_not_filled_in():
    table = torch.full((N_TOKENS, N_TOKENS), 0.02, dtype=torch.double)
    table[:, UNK_ID], table[UNK_ID, END_ID] = 0.5, 2.0
    model = Markov((table / table.sum(dim=1, keepdim=True))[None])
    world = MarkovWorld({"mask-seq2seq": model}, N_TOKENS, [])
    infiller, templates = world.infiller("mask-seq2seq"), together([Case("", [], [BLANK_ID])])
    (result,) = infiller.fill(templates)
    assert infiller.write_freely(templates) == [(UNK_ID,)]
    assert result.fill[0] in WORDS
