"""Signatures are datasketch's, bands keep their promise, and near-duplicates are those of the definition."""

import math

import numpy as np
import pytest
from datasketch import MinHash, MinHashLSH
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.kernels import minhash as minhash_module
from curation.kernels import near as near_module
from curation.kernels import postings as postings_module
from curation.kernels.minhash import Bands, band_keys, choose_bands, signatures
from curation.kernels.near import NearIndex, greedy_duplicates
from curation.kernels.shingles import ShingleSets, shingle_sets

V1 = choose_bands(0.7, 128, 1e-9)
WORDS = [f"{a}{b}" for a in ("ba", "de", "fi", "go", "ku", "la", "me", "ni") for b in ("rt", "ng", "sk", "ll", "mp")]

# Texts from few words, so that many share shingles.
few_words = st.lists(st.sampled_from(WORDS[:6]), max_size=9).map(" ".join)
any_texts = st.lists(few_words, max_size=25)


def index_of(texts, *, threshold=0.7, ngram_size=5, num_perm=128):
    bands = choose_bands(threshold, num_perm, 1e-9)
    return NearIndex(shingle_sets(texts, ngram_size), threshold=threshold, num_perm=num_perm, bands=bands)


def triples(found):
    return list(zip(found.items.tolist(), found.keepers.tolist(), found.scores.tolist(), strict=True))


def by_definition(sets, threshold):
    kept, dropped = [], []
    for i in range(len(sets)):
        for j in kept:
            if (score := sets.jaccard(i, sets, j)) >= threshold:
                dropped.append((i, j, score))
                break
        else:
            kept.append(i)
    return dropped


def pair_of(shared, changed, start=0):
    """Two texts with Jaccard (shared) / (shared + 2 changed) over 1-token shingles."""
    words = [f"w{start + i}" for i in range(shared + 2 * changed)]
    return " ".join(words[: shared + changed]), " ".join(words[:shared] + words[shared + changed :])


def test_signatures_are_those_of_datasketch_bit_for_bit():
    sets = shingle_sets(["The pump runs dry at low tide, and nobody minds.", "", "你好", "a b c d e f g"], 5)
    got = signatures(sets, 64)
    for i in range(len(sets)):
        reference = MinHash(num_perm=64, hashfunc=lambda value: value, scheme="affine32")
        reference.update_batch([value >> 32 for value in sets.of(i).tolist()])
        assert got[i].tolist() == reference.hashvalues.tolist()


def test_pinned_bits_of_a_signature():
    sets = shingle_sets(["The pump runs dry at low tide."], 5)
    assert signatures(sets, 128)[0, :4].tolist() == [1498777554, 1235061119, 441769647, 786052660]


@given(any_texts, st.integers(1, 9))
def test_signatures_do_not_depend_on_blocks(texts, block):
    sets = shingle_sets(texts, 2)
    whole = signatures(sets, 16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(minhash_module, "_BLOCK", block)
        assert np.array_equal(signatures(sets, 16), whole)


@pytest.mark.parametrize("jaccard", [0.3, 0.5, 0.7, 0.9])
def test_estimates_lie_within_five_standard_errors(jaccard):
    num_perm, num_pairs = 128, 40
    shared = round(200 * jaccard / (2 - jaccard) * 2)
    texts = [t for k in range(num_pairs) for t in pair_of(shared, 200 - shared, start=k * 1000)]
    sets = shingle_sets(texts, 1)
    truth = sets.jaccard(0, sets, 1)
    signature = signatures(sets, num_perm)
    agree = np.mean(signature[0::2] == signature[1::2])
    assert abs(agree - truth) <= 5 * math.sqrt(truth * (1 - truth) / (num_perm * num_pairs))


def test_the_bands_of_v1_worked_by_hand():
    assert (V1.num_bands, V1.rows) == (64, 2), "42 bands of 3 would miss (1 - 0.343)^42 = 2e-8"
    assert (1 - 0.7**2) ** 64 < V1.miss_probability < 1e-9
    below = sum(math.comb(128, m) * 0.7**m * 0.3 ** (128 - m) for m in range(V1.min_agreeing))
    assert below == pytest.approx(V1.miss_probability, rel=1e-6)
    one_more = below + math.comb(128, V1.min_agreeing) * 0.7**V1.min_agreeing * 0.3 ** (128 - V1.min_agreeing)
    assert one_more > 0.5e-9


@given(st.floats(0.3, 1.0), st.integers(16, 512), st.sampled_from([1e-3, 1e-6, 1e-9]))
def test_bands_keep_their_promise_or_refuse(threshold, num_perm, allowed):
    try:
        bands = choose_bands(threshold, num_perm, allowed)
    except ValueError as refusal:
        assert str(num_perm) in str(refusal)  # noqa: PT017
        assert (1 - threshold) ** num_perm > allowed / 2
        return
    assert bands.num_bands * bands.rows <= num_perm
    assert bands.miss_probability <= allowed
    wider = bands.rows + 1
    assert wider > num_perm or (1 - threshold**wider) ** (num_perm // wider) > allowed / 2, "the narrowest that keep it"


def test_a_band_key_is_shared_exactly_by_equal_bands():
    signature = np.array([[1, 2, 3, 4, 9], [1, 2, 4, 3, 9], [3, 4, 1, 2, 9], [1, 2, 3, 4, 8]], np.uint32)
    keys = band_keys(signature, Bands(num_bands=2, rows=2, min_agreeing=0, miss_probability=0.0))
    assert keys.shape == (4, 2), "the fifth value belongs to no band"
    assert keys[0].tolist() == keys[3].tolist()
    assert keys[0, 0] == keys[1, 0]
    assert len(np.unique(keys)) == 4 + 1, "(1, 2) as second band is another key than (1, 2) as first"


@given(any_texts)
@settings(max_examples=30)
def test_candidates_include_those_of_datasketchs_lsh(texts):
    sets = shingle_sets(texts, 2)
    lsh = MinHashLSH(num_perm=128, params=(V1.num_bands, V1.rows))
    index = NearIndex(sets, threshold=0.7, num_perm=128, bands=V1)
    for i in np.flatnonzero(sets.sizes).tolist():
        lsh.insert(i, MinHash(hashvalues=index.signatures[i], scheme="affine32"))
    expected = {
        (i, j)
        for i in np.flatnonzero(sets.sizes).tolist()
        for j in lsh.query(MinHash(hashvalues=index.signatures[i], scheme="affine32"))
        if j < i and sets.jaccard(i, sets, j) >= 0.7
    }
    everyone = np.ones(len(sets), np.bool_)
    got = {
        pair
        for a, b in near_module._earlier_candidates(index, everyone)
        for pair in zip(a.tolist(), b.tolist(), strict=True)
    }
    assert expected <= got
    assert got <= {(i, j) for i in range(len(sets)) for j in range(i)}


@given(any_texts, st.sampled_from([0.5, 0.7, 0.9, 1.0]), st.integers(1, 5))
def test_duplicates_are_those_of_the_definition(texts, threshold, ngram_size):
    index = index_of(texts, threshold=threshold, ngram_size=ngram_size, num_perm=256)
    assert triples(greedy_duplicates(index)) == by_definition(index.sets, threshold)


@given(any_texts, st.sampled_from([0.5, 0.7, 0.9, 1.0]), st.integers(1, 4), st.integers(1, 4), st.integers(1, 50))
def test_neither_crowds_nor_blocks_nor_chunks_change_a_verdict(texts, threshold, crowd, block, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_module, "_CROWD", crowd)
        patch.setattr(near_module, "_ITEM_BLOCK", block)
        patch.setattr(near_module, "_PAIR_CHUNK", chunk)
        index = index_of(texts, threshold=threshold, ngram_size=2, num_perm=256)
        assert triples(greedy_duplicates(index)) == by_definition(index.sets, threshold)


@pytest.mark.parametrize(("shared", "changed"), [(14, 3), (28, 6), (70, 15), (140, 30), (700, 150)])
def test_a_pair_exactly_at_the_threshold_is_near_and_one_below_is_not(shared, changed):
    at = [pair_of(shared, changed, start=10_000 * k) for k in range(20)]
    below = [pair_of(shared - 1, changed, start=10_000 * k + 5_000) for k in range(20)]
    texts = [text for pair in (*at, *below) for text in pair]
    found = triples(greedy_duplicates(index_of(texts, ngram_size=1)))
    assert found == [(2 * k + 1, 2 * k, 0.7) for k in range(20)]


def test_a_chain_is_not_one_cluster():
    """Each is near to the next, the first is not near to the last: only the middle one goes."""
    words = [f"w{i}" for i in range(40)]
    a, b, c = (" ".join(words[k : k + 20]) for k in (0, 3, 6))
    index = index_of([a, b, c], ngram_size=1)
    assert index.sets.jaccard(0, index.sets, 2) < 0.7 <= index.sets.jaccard(0, index.sets, 1)
    assert [(i, k) for i, k, _ in triples(greedy_duplicates(index))] == [(1, 0)]
    assert triples(greedy_duplicates(index_of([a, c, b], ngram_size=1)))[0][:2] == (2, 0)


def test_lsh_hits_below_the_threshold_are_not_duplicates():
    texts = [t for k in range(30) for t in pair_of(44, 18, start=k * 1000)]
    index = index_of(texts, ngram_size=1)
    assert index.sets.jaccard(0, index.sets, 1) == pytest.approx(0.55)
    found = greedy_duplicates(index)
    assert found.num_verified > 0
    assert len(found.items) == 0


def test_texts_that_share_a_template_all_stay_and_cost_little():
    template = " ".join(f"t{i}" for i in range(48))
    texts = [f"{template} " + " ".join(f"q{k}x{i}" for i in range(30)) for k in range(600)]
    found = greedy_duplicates(index_of(texts))
    assert len(found.items) == 0
    assert found.num_candidates < 20 * len(texts), "600 texts make 179,700 pairs"


def test_many_near_copies_leave_one():
    words = [f"w{i}" for i in range(200)]
    texts = [" ".join([*words[:k], f"other{k}", *words[k + 1 :]]) for k in range(200)]
    found = greedy_duplicates(index_of(texts))
    assert found.items.tolist() == list(range(1, 200))
    assert set(found.keepers.tolist()) == {0}


@given(any_texts)
@settings(max_examples=40)
def test_keys_that_leave_no_room_for_the_row_are_sorted_all_the_same(texts):
    plain = triples(greedy_duplicates(index_of(texts, ngram_size=2)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings_module, "_ROW_BITS", 4)
        assert triples(greedy_duplicates(index_of(texts, ngram_size=2))) == plain


def test_no_texts_one_text_and_texts_without_tokens():
    assert triples(greedy_duplicates(index_of([]))) == []
    assert triples(greedy_duplicates(index_of(["only one"]))) == []
    assert triples(greedy_duplicates(index_of(["", "！！！", "", "  "]))) == []


def test_sets_longer_than_a_block_are_hashed_whole(monkeypatch):
    sets = ShingleSets(
        np.arange(1, 101, dtype=np.uint64) << np.uint64(33), np.array([0, 0, 100, 100]), np.zeros(3, np.uint64)
    )
    expected = signatures(sets, 8)
    monkeypatch.setattr(minhash_module, "_BLOCK", 7)
    assert np.array_equal(signatures(sets, 8), expected)
    assert (expected[[0, 2]] == np.iinfo(np.uint32).max).all()
