"""Reference sets: what counts as contaminated, how it is told, and how the sets are read."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from curation.errors import BuildError
from curation.recipe import DecontaminateConfig, ReferenceConfig
from curation.reference import read_references
from curation.schema import POOL_SCHEMA
from curation.stages import decontaminate as module
from curation.stages.base import Drop
from curation.stages.decontaminate import ReferenceText, decontaminate

SENTENCE = "When the tide turns, the ferry waits at the lower pier until the last cart has crossed the planks"
EDITED = SENTENCE.replace("lower", "upper")
POOL = {
    "p:1": SENTENCE,
    "p:2": "Name three rivers that freeze in May.",
    "p:3": "Compute 4812 * 377 - 96.",
    "p:4": "x<<2",
    "p:5": "说明原因",
    "p:6": "？？？",
}


def pool(texts):
    rows = [
        {
            "record_id": record_id,
            "source": "p",
            "src_id": record_id,
            "category": "qa",
            "sub_category": "",
            "turns": ["Do this: " + text],
            "text": text,
            "language": "en",
            "difficulty": "",
            "template_id": "t/v1",
            "record_ids": [record_id],
            "is_code": False,
        }
        for record_id, text in texts.items()
    ]
    return pa.Table.from_pylist(rows, schema=POOL_SCHEMA)


def found(*texts, action="drop"):
    references = [ReferenceText("train", str(i), text) for i, text in enumerate(texts, start=1)]
    result, report = decontaminate(pool(POOL), references, DecontaminateConfig(action=action))
    return result.drops if action == "drop" else report.flags


def test_without_references_nothing_happens():
    result, report = decontaminate(pool(POOL), [], DecontaminateConfig())
    assert result.drops == ()
    assert result.table.num_rows == 6
    assert report.num_texts == {}


@pytest.mark.parametrize(
    ("text", "record_id", "reason", "score"),
    [
        (SENTENCE, "p:1", "contaminated_exact", 1.0),
        (SENTENCE + " \r\n", "p:1", "contaminated_exact", 1.0),
        (SENTENCE.upper().replace(" ", "\n"), "p:1", "contaminated_format_only", 1.0),
        (SENTENCE.replace(",", " —"), "p:1", "contaminated_format_only", 1.0),
        (f"Before it. {SENTENCE} again, and after it.", "p:1", "contaminated_exact", 1.0),
        (EDITED, "p:1", "contaminated_near", 18 / 19),
        ("name three rivers that freeze in may", "p:2", "contaminated_format_only", 1.0),
        ("Compute 4812 * 377 - 96", "p:3", "contaminated_format_only", 1.0),
        ("x << 2", "p:4", "contaminated_format_only", 1.0),
        ("说明原因！", "p:5", "contaminated_exact", 1.0),
        ("Compute 4812 - 377 * 96.", "p:3", "contaminated_near", 1.0),
        ("？？？", "p:6", "contaminated_exact", 1.0),
    ],
)
def test_a_match_is_told_by_class_row_and_score(text, record_id, reason, score):
    assert found("nothing like it", text) == (Drop(record_id, "decontaminate", reason, "train:2", score),)


@pytest.mark.parametrize(
    "text", ["", "  ", "！！！", "x>>2", "Compute 4813 * 377 - 96.", "说明结果", "Name three rivers"]
)
def test_other_texts_match_nothing(text):
    assert found(text) == ()


def test_the_strongest_match_is_told_whatever_the_order():
    texts = {"1": EDITED, "2": SENTENCE.lower(), "3": SENTENCE, "4": SENTENCE}
    rows = [ReferenceText("a", name, text) for name, text in texts.items()]
    for order in (rows, rows[::-1], rows[2:] + rows[:2]):
        result, _ = decontaminate(pool(POOL), order, DecontaminateConfig())
        assert [(d.reason, d.against) for d in result.drops] == [("contaminated_exact", "a:3")]
        less, _ = decontaminate(pool(POOL), [r for r in order if r.row < "3"], DecontaminateConfig())
        assert [(d.reason, d.against) for d in less.drops] == [("contaminated_format_only", "a:2")]


def test_flagged_records_stay_and_are_named():
    references = [ReferenceText("train", "1", SENTENCE)]
    result, report = decontaminate(pool(POOL), references, DecontaminateConfig(action="flag"))
    assert result.drops == ()
    assert result.table.num_rows == 6
    assert report.flags == (Drop("p:1", "decontaminate", "contaminated_exact", "train:1", 1.0),)


def test_the_report_counts_what_was_read_and_what_shows_nothing():
    references = [ReferenceText("a", "1", "one"), ReferenceText("a", "2", "!"), ReferenceText("b", "1", "")]
    _, report = decontaminate(pool(POOL), references, DecontaminateConfig())
    assert report.num_texts == {"a": 2, "b": 1}
    assert report.num_empty == {"b": 1}


def test_blocks_do_not_show_in_the_result(monkeypatch):
    texts = [EDITED, "filler", SENTENCE.lower(), "Name three rivers that freeze in May", "x << 2"]
    whole = found(*texts)
    monkeypatch.setattr(module, "_BLOCK_CHARS", 1)
    assert found(*texts) == whole
    assert len(whole) == 3


def test_an_empty_pool_has_nothing_to_find():
    result, report = decontaminate(pool({}), [ReferenceText("a", "1", "x")], DecontaminateConfig())
    assert result.table.num_rows == 0
    assert report.num_texts == {"a": 1}


# Reading


def write_rows(path: Path, rows, *, prefix=b""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(prefix + "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode())


def read(mirror, path, text=""):
    return [(r.row, r.text) for r in read_references([ReferenceConfig(name="n", path=path, text=text)], mirror)]


def test_jsonl_parquet_and_json_are_read_in_the_order_of_path_and_row(tmp_path):
    write_rows(tmp_path / "org/set/b.jsonl", [{"text": "one", "id": 1}, {"text": "zwei ü"}], prefix=b"\xef\xbb\xbf")
    (tmp_path / "org/set/a.json").write_text(json.dumps([{"question": "three"}]))
    pq.write_table(pa.table({"id": [1, 2], "prompt": ["four", "five"]}), tmp_path / "org/set/c.parquet")
    (tmp_path / "org/other.txt").write_text("not asked for")
    assert read(tmp_path, "org/set/*") == [
        ("org/set/a.json:1", "three"),
        ("org/set/b.jsonl:1", "one"),
        ("org/set/b.jsonl:2", "zwei ü"),
        ("org/set/c.parquet:1", "four"),
        ("org/set/c.parquet:2", "five"),
    ]


def test_of_a_chat_the_user_messages_are_read(tmp_path):
    write_rows(
        tmp_path / "chat.jsonl",
        [
            {
                "messages": [
                    {"role": "system", "content": "s"},
                    {"role": "user", "content": "u1"},
                    {"role": "user", "content": "u2"},
                ]
            },
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "u3"}, {"type": "image"}]}]},
            {"messages": [{"from": "human", "value": "u4"}, {"from": "gpt", "value": "g"}]},
        ],
    )
    expected = [("chat.jsonl:1#1", "u1"), ("chat.jsonl:1#2", "u2"), ("chat.jsonl:2", "u3"), ("chat.jsonl:3", "u4")]
    assert read(tmp_path, "chat.jsonl") == expected
    table = pa.table({"messages": [[{"role": "user", "content": "u1"}, {"role": "assistant", "content": "a"}]]})
    pq.write_table(table, tmp_path / "chat.parquet")
    assert read(tmp_path, "chat.parquet") == [("chat.parquet:1", "u1")]


def test_a_named_column_wins_and_blank_lines_keep_their_numbers(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "no", "goal": "yes"}\n\n{"text": "no", "goal": ["p", "q"]}\n')
    assert read(tmp_path, "a.jsonl", text="goal") == [("a.jsonl:1", "yes"), ("a.jsonl:3#1", "p"), ("a.jsonl:3#2", "q")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"text": "ok"}\n{"text": "bro', r"a\.jsonl:2 is not JSON"),
        ("a.jsonl", b'{"text": "ok"}\n{"text": null}', r"a\.jsonl:2 has no text in column 'text': name its column"),
        ("a.jsonl", b'{"txt": "x", "id": 1}', r"a\.jsonl:1 has none of the columns .*, only txt, id: name the one"),
        ("a.jsonl", b"[1]", r"a\.jsonl:1 has none of the columns .*, only none"),
        ("a.json", b'{"text": "x"}', r"a\.json is not an array of rows"),
        ("a.json", b"[", r"a\.json is not JSON"),
        ("a.parquet", b"PAR1", r"a\.parquet is no parquet file"),
        ("a.csv", b"text\nx", r"a\.csv is no parquet, JSONL or JSON file"),
    ],
)
def test_what_cannot_be_read_is_refused_by_file_and_row(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BuildError, match=message):
        read(tmp_path, name)


def test_a_pattern_that_matches_no_file_is_refused(tmp_path):
    with pytest.raises(BuildError, match=r"reference n: no file matches gone/\*: correct the path"):
        read(tmp_path, "gone/*")
    with pytest.raises(BuildError, match="pass --mirror DIR"):
        read(None, "x.jsonl")


@pytest.mark.parametrize("path", ["hf://datasets/org/name/a.parquet", "hf://datasets/org/name@main/a", "hf://org/name"])
def test_a_hub_reference_must_be_pinned(path):
    with pytest.raises(ValidationError, match="40 hex digits"):
        ReferenceConfig(name="n", path=path)


def test_a_hub_reference_is_read_at_its_revision(monkeypatch, tmp_path):
    revision = "0" * 39 + "1"
    write_rows(tmp_path / "rows.jsonl", [{"text": "from the hub"}])

    class Hub:
        def glob(self, pattern):
            assert pattern == f"hf://datasets/org/name@{revision}/data/*.jsonl"
            return [f"datasets/org/name@{revision}/data/rows.jsonl"]

        def open(self, path, mode):
            assert path == f"datasets/org/name@{revision}/data/rows.jsonl"
            return (tmp_path / "rows.jsonl").open(mode)

    monkeypatch.setattr("huggingface_hub.HfFileSystem", Hub)
    assert read(None, f"hf://datasets/org/name@{revision}/data/*.jsonl") == [("data/rows.jsonl:1", "from the hub")]


def test_a_hub_that_does_not_answer_is_one_line(monkeypatch):
    class Hub:
        def glob(self, pattern):
            raise ConnectionError("no route\nsecond line")

    monkeypatch.setattr("huggingface_hub.HfFileSystem", Hub)
    with pytest.raises(BuildError, match=r"reference n: .* cannot be read: no route$"):
        read(None, "hf://datasets/org/name@" + "a" * 40 + "/x.jsonl")


def test_two_reference_sets_of_one_name_are_refused():
    one = ReferenceConfig(name="n", path="a")
    with pytest.raises(ValidationError, match="share a name"):
        DecontaminateConfig(reference=(one, one))
