import json

import pytest

from bench.config import DataConfig
from bench.errors import BenchError
from bench.split import load_split
from curation.schema import SENTINEL


@pytest.fixture
def withheld(tmp_path):
    rows = [
        {"question_id": "a1", "category": "humanities", "turns": ["Why did canals lose to railways?"]},
        {"question_id": "a2", "category": "stem", "turns": [SENTINEL]},
        {"question_id": "a3", "category": "stem", "turns": ["State Ohm's law.", "Where does it fail?"]},
        {"question_id": "a4", "category": "reasoning", "turns": ["Three cups, one coin. Which?", SENTINEL]},
        {"question_id": "a5", "category": "writing", "turns": [f"Explain the words: {SENTINEL}"]},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_placeholders_stop_a_run_before_its_first_request(withheld):
    with pytest.raises(BenchError, match=r"2 of 5 rows are placeholders \(a2, a4\)"):
        load_split(DataConfig(format="jsonl", path=str(withheld)))


def test_a_partial_run_says_what_it_lacks(withheld):
    split = load_split(DataConfig(format="jsonl", path=str(withheld), allow_partial=True))
    assert [c.question_id for c in split.conversations] == ["a1", "a3", "a5"]
    assert split.placeholders == ("a2", "a4")
    assert split.shortfall() == {"reasoning": (0, 1), "stem": (1, 2)}


def test_mt_bench_rows_inside_spec_bench_are_one_task(tmp_path):
    path = tmp_path / "q.jsonl"
    rows = [
        {"question_id": 1, "category": "math", "turns": ["x"]},
        {"question_id": 2, "category": "rag", "turns": ["y"]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    split = load_split(DataConfig(format="spec_bench", path=str(path)))
    assert [(c.slices["category"], c.slices["sub_category"]) for c in split.conversations] == [
        ("mt_bench", "math"),
        ("rag", ""),
    ]


@pytest.mark.parametrize(
    ("line", "says"), [("{", "not JSON"), ('{"turns": []}', "need `turns`"), ('{"turns": [1]}', "need `turns`")]
)
def test_a_bad_line_is_named(tmp_path, line, says):
    path = tmp_path / "q.jsonl"
    path.write_text('{"prompt": "fine"}\n' + line + "\n", "utf-8")
    with pytest.raises(BenchError, match=rf"q.jsonl:2: .*{says}"):
        load_split(DataConfig(format="jsonl", path=str(path)))


def test_random_prompts_have_their_length_and_a_mark():
    split = load_split(DataConfig(format="random", random_rows=3, random_isl=17, seed=5))
    assert split.synthetic
    assert [len(c.random_ids) for c in split.conversations] == [17, 17, 17]
    assert split == load_split(DataConfig(format="random", random_rows=3, random_isl=17, seed=5))


def test_the_digest_is_of_the_rows_that_are_sent(withheld):
    data = DataConfig(format="jsonl", path=str(withheld), allow_partial=True)
    whole, first = load_split(data), load_split(data.model_copy(update={"first_turn_only": True}))
    assert whole.sha256 != first.sha256
    assert all(len(c.turns) == 1 for c in first.conversations)


def test_two_rows_of_one_id_are_refused(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text('{"question_id": "a", "prompt": "x"}\n{"question_id": "a", "prompt": "y"}\n', "utf-8")
    with pytest.raises(BenchError, match="'a' stands in two rows"):
        load_split(DataConfig(format="jsonl", path=str(path)))


def test_a_dist_is_read_with_its_slices(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "data").mkdir()
    row = {"question_id": "a", "category": "low_entropy", "sub_category": "", "turns": ["x"], "source": "s"}
    row |= {"src_id": "1", "difficulty": "", "multiturn": False}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "data" / "throughput_8k.parquet")
    (conversation,) = load_split(DataConfig(path=str(tmp_path), config="throughput_8k")).conversations
    assert conversation.slices["isl"] == "8k"
    assert conversation.slices["tier"] == "low_entropy"
    assert conversation.slices["multiturn"] == "false"
