from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tigs.config import MethodConfig
from tigs.data.batch import pad
from tigs.data.special import BLANK_ID
from tigs.inference.bibs import Bibs
from tigs.inference.words import forbidden_words

from .markov import N_TOKENS, WORDS, all_fills, random_two_sided
from .worlds import Case, markov_world, start_from, together


def bibs_from(model, cases, start_fills, n_tokens, **options):
    """BiBS from given words."""
    forbidden = forbidden_words(n_tokens, allow_unk=False)
    return Bibs(model, start_from(start_fills), MethodConfig(**options), forbidden=forbidden).fill(together(cases))


# The method again, with lists: one sentence, whole prefixes read anew for every word.


def plain_beam(log_probability, template, words, *, width, guide):
    """Hypotheses (sentence, score), per blank the best score of any of them that goes on with each word, and tokens read."""
    hypotheses, messages, n_read = [([], 0.0)], {}, 0
    for place, token in enumerate(template):
        n_read += len(hypotheses)
        allowed = words if token == BLANK_ID else [token]
        grown = []
        for prefix, score in hypotheses:
            row = log_probability(prefix)
            grown += [([*prefix, word], score + row[word]) for word in allowed]
        if token == BLANK_ID:
            messages[place] = {w: max(score for said, score in grown if said[-1] == w) for w in words}
            grown.sort(key=lambda own: -(own[1] + guide[place][own[0][-1]]))
            grown = grown[:width]
        hypotheses = grown
    return hypotheses, messages, n_read


def plain_bibs(left, right, template, start, words, *, width, max_rounds):
    """Best objective after each round, all objectives, and tokens that must be read to know them.

    `left` and `right` map a prefix of their own direction to log P(next word).
    """
    length = len(template)

    def objective(sentence):
        return -sum(left(sentence[:t])[w] + right(sentence[:t:-1])[w] for t, w in enumerate(sentence))

    from_right = {}
    for place, token in enumerate(template):
        if token == BLANK_ID:
            behind = start[:place:-1]
            so_far = sum(right(behind[:n])[word] for n, word in enumerate(behind))
            from_right[place] = {word: so_far + right(behind)[word] for word in words}
    best = {tuple(start): objective(start)}
    trace = [min(best.values())]
    n_read = 2 * length
    for _ in range(max_rounds):
        beams, from_left, from_left_read = plain_beam(left, template, words, width=width, guide=from_right)
        best |= {tuple(sentence): objective(sentence) for sentence, _ in beams}
        mirrored = {length - 1 - place: message for place, message in from_left.items()}
        beams, messages, from_right_read = plain_beam(right, template[::-1], words, width=width, guide=mirrored)
        best |= {tuple(sentence[::-1]): objective(sentence[::-1]) for sentence, _ in beams}
        from_right = {length - 1 - place: message for place, message in messages.items()}
        n_read += from_left_read + from_right_read
        trace.append(min(best.values()))
        if trace[-1] > trace[-2] - 1e-9:
            break
    # What a beam has read is read once more, by the other direction; all but the start came out of beams.
    return trace, sorted(best.values()), n_read + length * (len(best) - 1)


def markov_reader(reader, context):
    table = reader.transitions[reader.first_table(context)].log().tolist()
    return lambda prefix: table[prefix[-1] if prefix else reader.first_token]


def network_reader(reader, context):
    known = {}

    @torch.no_grad()
    def log_probability(prefix):
        if tuple(prefix) not in known:
            outputs, _ = reader.run(reader.start(pad([context])), torch.tensor([[reader.first_token, *prefix]]))
            known[tuple(prefix)] = reader.log_probabilities(outputs[0, -1]).tolist()
        return known[tuple(prefix)]

    return log_probability


@given(st.integers(0, 10**6), st.integers(1, 4))
@example(582524, 3)
@settings(max_examples=25)
def test_it_is_the_method_written_with_lists(seed, width):
    world = markov_world(seed)
    # Two directions that do not agree, or one of them would do.
    model = random_two_sided(seed)
    model.right_reader.transitions = random_two_sided(seed + 1).right_reader.transitions
    cases = world.cases(4, seed=seed)
    starts = [(WORDS[seed % 6],) * case.n_blanks for case in cases]
    results = bibs_from(model, cases, starts, N_TOKENS, beam_width=width, n_best=width, max_rounds=6)
    for case, start, result in zip(cases, starts, results, strict=True):
        trace, nlls, n_read = plain_bibs(
            markov_reader(model.left_reader, case.context),
            markov_reader(model.right_reader, case.context),
            case.template,
            case.filled(start),
            WORDS,
            width=width,
            max_rounds=6,
        )
        assert result.trace == pytest.approx(trace)
        # The same pairs of words in another order cost the same in a chain: which of such fills a beam keeps is arbitrary.
        if any(later - earlier < 1e-9 for earlier, later in itertools.pairwise(nlls)):
            continue
        assert [other.nll for other in result.alternatives] == pytest.approx(nlls[:width])
        assert result.model_steps == n_read


def test_the_same_on_a_trained_model(worlds):
    world = worlds("poetry")
    network = world.networks["birnn"]
    cases = [*world.cases(4, longest=8, most_blanks=3, seed=5), Case("last", world.pairs[0][0], [9, BLANK_ID])]
    starts = [result.fill for result in world.fill("birnn-bibs", cases, max_rounds=0, start="random")]
    results = bibs_from(network, cases, starts, world.n_tokens, beam_width=2, n_best=2, max_rounds=3)
    for case, start, result in zip(cases, starts, results, strict=True):
        trace, nlls, n_read = plain_bibs(
            network_reader(network.left_reader, case.context),
            network_reader(network.right_reader, case.context),
            case.template,
            case.filled(start),
            range(5, world.n_tokens),
            width=2,
            max_rounds=3,
        )
        assert result.trace == pytest.approx(trace, abs=1e-4)
        assert [other.nll for other in result.alternatives] == pytest.approx(nlls[:2], abs=1e-4)
        assert result.model_steps == n_read


def best_objective(model, case):
    return min(
        (
            model.left_reader.exact_nll(case.context, words, end=False)
            + model.right_reader.exact_nll(case.context, words[::-1], end=False)
        ).item()
        for _, words in all_fills(case.template)
    )


@given(st.integers(0, 10**6))
@settings(max_examples=15)
def test_where_both_directions_agree_a_wide_beam_finds_the_best_there_is(seed):
    world = markov_world(seed)
    model = world.networks["birnn"]
    cases = world.cases(3, seed=seed, most_blanks=3)
    for case, result in zip(cases, world.fill("birnn-bibs", cases, beam_width=6**3, start="random"), strict=True):
        assert result.nll == pytest.approx(best_objective(model, case))


def test_both_readers_of_the_chain_agree():
    """Or the tests above would be about something else."""
    model = random_two_sided(5)
    for context in ([], [WORDS[0]], [WORDS[1]]):
        for _, words in all_fills([BLANK_ID, WORDS[2], BLANK_ID]):
            left = model.left_reader.exact_nll(context, words, end=False).item()
            assert left == pytest.approx(model.right_reader.exact_nll(context, words[::-1], end=False).item(), abs=1e-6)
