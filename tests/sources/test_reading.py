"""A bad row is rejected with its file, line and reason, and the rest goes on; a bad file is one error."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.base import FileSpec, Rejected
from sources.columns import ColumnError, conform
from sources.errors import SourceError
from sources.reading import PARQUET_BATCH_ROWS, read_rows

Q: Mapping[str, str] = {"q": "string"}
Read = Callable[..., tuple[list[dict[str, Any]], list[tuple[int, str]]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """The values of the good rows, and line and reason of the bad ones."""

    def run(data: bytes | Path, format: str, columns: Mapping[str, str] = Q, row_tag: str = "") -> Any:
        path = data if isinstance(data, Path) else tmp_path / "file"
        if isinstance(data, bytes):
            path.write_bytes(data)
        rejected: list[Rejected] = []
        spec = FileSpec("dir/file", format, columns, row_tag)  # type: ignore[arg-type]
        rows = [dict(row.values) for row in read_rows(path, spec, "dir/file", rejected.append)]
        assert {r.file for r in rejected} <= {"dir/file"}
        return rows, [(r.line, r.reason) for r in rejected]

    return run


def texts(rows: list[dict[str, Any]]) -> list[Any]:
    return [row["q"] for row in rows]


def parquet(path: Path, columns: Mapping[str, pa.Array], **options: Any) -> Path:
    pq.write_table(pa.table(dict(columns)), path, **options)
    return path


def test_jsonl_is_read_with_a_bom_blank_lines_any_line_end_and_none_at_the_end(read: Read) -> None:
    data = b'\xef\xbb\xbf{"q": "a"}\r\n\r\n  \n{"q": "b", "more": 1}\n{"more": 2, "q": "c"}'
    assert read(data, "jsonl") == ([{"q": "a"}, {"q": "b"}, {"q": "c"}], [])


def test_rows_and_rejections_name_the_line_as_an_editor_counts_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b'\n{"q": "a"}\n\n{"q": 3}\n{"q": "b"}\n')
    rejected: list[Rejected] = []
    rows = list(read_rows(path, FileSpec("f", "jsonl", Q), "f", rejected.append))
    assert [row.line for row in rows] == [2, 5]
    assert rejected == [Rejected("f", 4, "column q: expected string, found int")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON: Expecting property name enclosed in double quotes at character 2"),
        (b"[1]", "expected an object, found list"),
        (b"null", "expected an object, found null"),
        (b'{"other": 1}', "missing column q"),
        (b'{"q": null}', "column q: expected string, found null"),
        (b'{"q": true}', "column q: expected string, found bool"),
        (b'{"q": ["a"]}', "column q: expected string, found list"),
        (b'{"q": {"a": 1}}', "column q: expected string, found struct"),
        (b'{"q": "\xff"}', "not UTF-8 at byte 7 of the line"),
        (b'{"q": "a"} {"q": "b"}', "not JSON: Extra data at character 12"),
        (b"[" * 200_000, "not JSON that can be read: maximum recursion depth exceeded"),
    ],
)
def test_one_bad_line_is_rejected_with_its_reason_and_the_rest_goes_on(read: Read, line: bytes, reason: str) -> None:
    rows, rejected = read(b'{"q": "before"}\n' + line + b'\n{"q": "after"}\n', "jsonl")
    assert texts(rows) == ["before", "after"]
    ((number, found),) = rejected
    assert number == 2
    assert found.startswith(reason)


def test_a_number_of_five_thousand_digits_costs_one_row(read: Read) -> None:
    rows, rejected = read(b'{"q": ' + b"9" * 5000 + b'}\n{"q": "after"}\n', "jsonl")
    assert texts(rows) == ["after"]
    assert rejected[0][0] == 1


def test_lone_surrogates_nul_and_raw_control_characters_are_handed_on(read: Read) -> None:
    data = (
        b'{"q": "a\\ud800b"}\n{"q": "a\\u0000b"}\n{"q": "a\x00\tb"}\n{"q": "\xed\xa0\x80"}\n{"q": "\\ud83d\\ude00"}\n'
    )
    assert texts(read(data, "jsonl")[0]) == ["a\ud800b", "a\0b", "a\0\tb", "\ud800", "😀"]


def test_only_a_line_feed_ends_a_line(read: Read) -> None:
    text = "a\u2028b\u2029c\u0085d"
    assert texts(read(json.dumps({"q": text}, ensure_ascii=False).encode(), "jsonl")[0]) == [text]


def test_a_line_of_ten_million_characters_is_a_row_like_any_other(read: Read) -> None:
    rows, _ = read(b'{"q": "' + b"x" * 10_000_000 + b'"}\n{"q": "next"}\n', "jsonl")
    assert [len(t) for t in texts(rows)] == [10_000_000, 4]


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.none() | st.booleans(), max_size=4)))
def test_every_line_of_jsonl_is_a_row_or_a_rejection(
    tmp_path_factory: pytest.TempPathFactory, objects: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.mktemp("jsonl") / "file"
    path.write_text("".join(json.dumps(o) + "\n" for o in objects), "utf-8")
    rejected: list[Rejected] = []
    rows = list(read_rows(path, FileSpec("f", "jsonl", {"q": "string?"}), "f", rejected.append))
    lines = [r.line for r in rows] + [r.line for r in rejected]
    assert sorted(lines) == list(range(1, len(objects) + 1))
    assert {r.line for r in rejected} == {
        i for i, o in enumerate(objects, 1) if not isinstance(o.get("q", ""), str | None)
    }


@pytest.mark.parametrize("format", ["jsonl", "json"])
def test_a_column_that_the_whole_file_lacks_is_one_error_that_names_both(read: Read, format: str) -> None:
    rows = [{"other": i} for i in range(100)]
    data = json.dumps(rows) if format == "json" else "\n".join(map(json.dumps, rows))
    with pytest.raises(SourceError, match=r"^dir/file: no row has the column q; is this the pinned file\?$"):
        read(data.encode(), format)


def test_a_file_that_is_refused_leaves_no_rejections_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b'{"p": 1}\nnot json\n')
    rejected: list[Rejected] = []
    with pytest.raises(SourceError):
        list(read_rows(tmp_path / "file", FileSpec("f", "jsonl", Q), "f", rejected.append))
    assert rejected == []


def test_a_column_that_appears_late_makes_rejections_of_the_rows_before_it(read: Read) -> None:
    rows, rejected = read(b'{"p": 1}\n{"p": 2}\n{"q": "a"}\n{"p": 3}\n', "jsonl")
    assert texts(rows) == ["a"]
    assert rejected == [(1, "missing column q"), (2, "missing column q"), (4, "missing column q")]


def test_a_column_that_may_be_absent_is_null_where_it_is(read: Read) -> None:
    rows, rejected = read(b'{"p": "x"}\n{"p": "y", "q": null}\n', "jsonl", {"p": "string", "q": "string?"})
    assert rows == [{"p": "x", "q": None}, {"p": "y", "q": None}]
    assert rejected == []


def test_a_file_without_rows_is_a_warning(read: Read, caplog: pytest.LogCaptureFixture) -> None:
    assert read(b"\n\n", "jsonl") == ([], [])
    assert "dir/file holds no rows" in caplog.text


@pytest.mark.parametrize(
    ("value", "kind", "taken"),
    [
        (3, "int64", 3),
        (3, "float64", 3.0),
        (3.5, "float64", 3.5),
        (True, "bool", True),
        (["a", "b"], "list<string>", ["a", "b"]),
        ([], "list<string>", []),
        ([1], "list<int64>", [1]),
        ([{"a": 1}], "list<struct>", [{"a": 1}]),
        ({"a": 1}, "struct", {"a": 1}),
        ([1, "a", None], "any", [1, "a", None]),
        (None, "any", None),
        (None, "list<string>?", None),
    ],
)
def test_a_value_of_the_asked_type_is_taken(value: Any, kind: str, taken: Any) -> None:
    found = conform({"x": value}, {"x": kind})["x"]
    assert (found, type(found)) == (taken, type(taken))


@pytest.mark.parametrize(
    ("value", "kind", "reason"),
    [
        (True, "int64", "expected int64, found bool"),
        (True, "float64", "expected float64, found bool"),
        (3.0, "int64", "expected int64, found float"),
        (2**63, "int64", "expected int64, found an integer beyond 64 bits"),
        (float("nan"), "float64", "expected float64, found nan"),
        (float("inf"), "float64?", "expected float64, found inf"),
        (1, "bool", "expected bool, found int"),
        ("a", "list<string>", "expected list<string>, found string"),
        (["a", None], "list<string>", "expected list<string>, found null at position 1"),
        ([True], "list<int64>", "expected list<int64>, found bool at position 0"),
        (["a"], "list<struct>", "expected list<struct>, found string at position 0"),
        (None, "list<string>", "expected list<string>, found null"),
        ([], "struct", "expected struct, found list"),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(value: Any, kind: str, reason: str) -> None:
    with pytest.raises(ColumnError) as error:
        conform({"x": value}, {"x": kind})
    assert str(error.value) == f"column x: {reason}"


def test_json_rows_are_the_objects_of_an_array(read: Read) -> None:
    rows, rejected = read(b'\xef\xbb\xbf[{"q": "a"}, 7, {"q": 1}, {"q": "b"}]', "json")
    assert texts(rows) == ["a", "b"]
    assert rejected == [(2, "expected an object, found int"), (3, "column q: expected string, found int")]


def test_json_dict_rows_are_keys_and_values_and_a_key_that_stands_twice_is_no_silent_loss(read: Read) -> None:
    data = b'{"b": {"x": 1, "x": 2}, "a": {"x": 3}, "b": {"x": 4}}'
    rows, rejected = read(data, "json_dict", {"key": "string", "value": "struct"})
    assert rows == [{"key": "b", "value": {"x": 2}}, {"key": "a", "value": {"x": 3}}]
    assert rejected == [(3, "key 'b' stands twice")]


@pytest.mark.parametrize(
    ("data", "format", "message"),
    [
        (b'[{"q": "a"},\n {"q"}]', "json", "dir/file:2: not JSON: Expecting ':' delimiter in column 6"),
        (b'{"q": "a"}', "json", "dir/file: expected a JSON array of objects, found dict"),
        (b'[{"q": "\xff"}]', "json", "dir/file: not UTF-8 at byte 8"),
        (b"[1]", "json_dict", "dir/file: expected one JSON object"),
        ('{"q": "a"}'.encode("utf-16"), "jsonl", "dir/file: is UTF-16 where UTF-8 is expected"),
        ("[]".encode("utf-16"), "json", "dir/file: is UTF-16 where UTF-8 is expected"),
        (b"abc\xffdef", "text", "dir/file: not UTF-8 at byte 3"),
        (b"PAR1 and no more", "parquet", "dir/file: not parquet that can be read"),
        (b"<a><b></a>", "xml", "dir/file:1: not XML: mismatched tag in column"),
        (b"<a><c/></a>", "xml", "dir/file: has no element <b>"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_error(read: Read, data: bytes, format: str, message: str) -> None:
    with pytest.raises(SourceError) as error:
        read(data, format, row_tag="b" if format == "xml" else "")
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("format", ["json", "json_dict", "jsonl", "parquet", "text", "xml"])
def test_a_file_that_vanished_is_one_error(read: Read, tmp_path: Path, format: str) -> None:
    with pytest.raises(SourceError, match=r"^dir/file: cannot be read"):
        read(tmp_path / "gone", format, row_tag="b" if format == "xml" else "")


def test_text_is_one_row_without_its_bom(read: Read) -> None:
    rows, _ = read("\ufeffone\r\ntwo\n".encode(), "text", {"text": "string"})
    assert rows == [{"text": "one\r\ntwo\n"}]


def test_xml_rows_are_the_outermost_elements_of_a_tag_whole(read: Read) -> None:
    data = "<?xml version='1.0' encoding='latin-1'?><t><s id='1'>a<s/>é &amp; &#8364;<i k='v'/>b</s><o/><s id='2'/></t>"
    rows, _ = read(data.encode("latin-1"), "xml", {"element": "any"}, "s")
    first, second = (row["element"] for row in rows)
    assert (first.get("id"), second.get("id")) == ("1", "2")
    assert "".join(first.itertext()) == "aé & €b"
    assert first.find("i").get("k") == "v"


def test_xml_is_read_across_the_edges_of_its_chunks(read: Read) -> None:
    body = "".join(f"<s id='{i}'>{'é' * (i % 700)}</s>" for i in range(3000))
    rows, _ = read(f"<t>{body}</t>".encode(), "xml", {"element": "any"}, "s")
    assert [len(row["element"].text or "") for row in rows] == [i % 700 for i in range(3000)]


@pytest.mark.parametrize(
    "head",
    [
        "<!DOCTYPE t [<!ENTITY x 'boom'>]>",
        "<!DOCTYPE t [<!ENTITY x SYSTEM 'file:///etc/hostname'>]>",
        "<!DOCTYPE t SYSTEM 'http://127.0.0.1/x.dtd'>",
        "<!DOCTYPE t>",
    ],
)
def test_xml_with_a_document_type_is_refused_before_anything_is_expanded(read: Read, head: str) -> None:
    with pytest.raises(SourceError, match="document type"):
        read(f"{head}<t><s>&x;</s></t>".encode(), "xml", {"element": "any"}, "s")


def test_parquet_hands_over_only_the_needed_columns_in_order(read: Read, tmp_path: Path) -> None:
    n = 3 * PARQUET_BATCH_ROWS + 5
    path = parquet(tmp_path / "p", {"image": pa.array([b"\xff"] * n), "q": pa.array([str(i) for i in range(n)])})
    rows, rejected = read(path, "parquet")
    assert rows == [{"q": str(i)} for i in range(n)]
    assert rejected == []


@pytest.mark.parametrize(
    ("array", "kind", "values"),
    [
        (pa.array(["a", "b", "a"]).dictionary_encode(), "string", ["a", "b", "a"]),
        (pa.array(["a", "b"], pa.large_string()), "string", ["a", "b"]),
        (pa.array(["a", "b"], pa.string_view()), "string", ["a", "b"]),
        (pa.array([1, 2], pa.uint8()), "int64", [1, 2]),
        (pa.array([1, 2], pa.int32()), "float64", [1.0, 2.0]),
        (pa.array([0.5], pa.float32()), "float64", [0.5]),
        (pa.array([["a"], []], pa.large_list(pa.large_string())), "list<string>", [["a"], []]),
        (pa.array([["a"], []], pa.list_view(pa.string())), "list<string>", [["a"], []]),
        (pa.array([["a"], ["b"]], pa.list_(pa.string(), 1)), "list<string>", [["a"], ["b"]]),
        (pa.array([{"x": 1, "y": None}]), "struct", [{"x": 1, "y": None}]),
        (pa.array([[{"x": 1}]]), "list<struct>", [[{"x": 1}]]),
        (pa.nulls(2), "string?", [None, None]),
        (pa.nulls(2), "list<string>?", [None, None]),
        (pa.nulls(2), "any", [None, None]),
    ],
)
def test_parquet_values_are_the_same_however_they_are_encoded(
    read: Read, tmp_path: Path, array: pa.Array, kind: str, values: list[Any]
) -> None:
    assert texts(read(parquet(tmp_path / "p", {"q": array}), "parquet", {"q": kind})[0]) == values


def test_parquet_rows_that_are_null_where_a_value_is_needed_are_rejected(read: Read, tmp_path: Path) -> None:
    path = parquet(tmp_path / "p", {"q": pa.array(["a", None, "b"])})
    rows, rejected = read(path, "parquet")
    assert texts(rows) == ["a", "b"]
    assert rejected == [(2, "column q: expected string, found null")]


def test_a_parquet_row_with_a_broken_cell_is_rejected_alone(read: Read, tmp_path: Path) -> None:
    cells = pa.array([b"a", b"\xff\xfe", b"b"]).cast(pa.binary()).view(pa.string())
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]), pa.array([b"x", b"y", b"\x80"]).view(pa.string()))
    path = parquet(tmp_path / "p", {"q": cells, "l": lists})
    rows, rejected = read(path, "parquet", {"q": "string", "l": "list<string>"})
    assert rows == [{"q": "a", "l": ["x"]}]
    assert [line for line, _ in rejected] == [2, 3]
    assert rejected[0][1].startswith("column q: cannot be decoded")
    assert rejected[1][1].startswith("column l: cannot be decoded")


def test_an_unsigned_integer_beyond_int64_is_rejected_and_not_wrapped(read: Read, tmp_path: Path) -> None:
    path = parquet(tmp_path / "p", {"q": pa.array([1, 2**64 - 1], pa.uint64())})
    rows, rejected = read(path, "parquet", {"q": "int64"})
    assert texts(rows) == [1]
    assert rejected == [(2, "column q: expected int64, found an integer beyond 64 bits")]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"q": "string", "r": "string", "s": "int64"},
            "dir/file: no row has the column r, s; is this the pinned file?",
        ),
        ({"q": "int64"}, "dir/file: column q: expected int64, found string"),
        ({"q": "list<string>"}, "dir/file: column q: expected list<string>, found string"),
    ],
)
def test_a_parquet_file_of_another_schema_is_one_error(
    read: Read, tmp_path: Path, columns: Mapping[str, str], message: str
) -> None:
    with pytest.raises(SourceError) as error:
        read(parquet(tmp_path / "p", {"q": pa.array(["a"])}), "parquet", columns)
    assert str(error.value) == message


def test_a_column_that_stands_twice_in_parquet_is_one_error(read: Read, tmp_path: Path) -> None:
    pq.write_table(pa.table([pa.array(["a"]), pa.array(["b"])], names=["q", "q"]), tmp_path / "p")
    with pytest.raises(SourceError, match="column q stands twice"):
        read(tmp_path / "p", "parquet")


@pytest.mark.parametrize(
    ("format", "columns", "row_tag"), [("jsonl", {"q": "str"}, ""), ("xml", {}, ""), ("jsonl", {}, "s")]
)
def test_a_file_spec_that_cannot_work_is_refused_where_it_is_written(
    format: str, columns: Mapping[str, str], row_tag: str
) -> None:
    with pytest.raises(ValueError, match="f: "):
        FileSpec("f", format, columns, row_tag)  # type: ignore[arg-type]


def test_an_optional_column_that_a_parquet_file_lacks_is_null(read: Read, tmp_path: Path) -> None:
    path = parquet(tmp_path / "p", {"q": pa.array(["a"])})
    assert read(path, "parquet", {"q": "string", "r": "string?"})[0] == [{"q": "a", "r": None}]


def test_a_parquet_file_that_is_cut_off_is_one_error(read: Read, tmp_path: Path) -> None:
    whole = parquet(tmp_path / "p", {"q": pa.array([f"text {i}" for i in range(10_000)])}, compression="none")
    data = bytearray(whole.read_bytes())
    data[200:4000] = bytes(3800)
    whole.write_bytes(bytes(data))
    with pytest.raises(SourceError, match=r"^dir/file: .*fetch it again$"):
        read(whole, "parquet")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (b"\x00\x01garbage\n\x02more\n", r"a\.jsonl:1: not JSON: .*; none of its rows can be read"),
        (b'\n{"text": 1}\n{"text": 2}\n', r"a\.jsonl:2: .*text.*; none of its rows can be read"),
        (b"[]\n", r"a\.jsonl:1: expected an object, found .*; none of its rows can be read"),
    ],
)
def test_a_file_without_one_good_row_is_an_error_and_not_a_list_of_rejections(tmp_path, lines, said):
    (tmp_path / "a.jsonl").write_bytes(lines)
    spec = FileSpec("a.jsonl", "jsonl", {"text": "string"})
    with pytest.raises(SourceError, match=said):
        list(read_rows(tmp_path / "a.jsonl", spec, "a.jsonl", lambda _: None))


def test_a_parquet_file_whose_needed_column_is_null_throughout_is_an_error(tmp_path):
    pq.write_table(pa.table({"text": pa.nulls(3)}), tmp_path / "a.parquet")
    spec = FileSpec("a.parquet", "parquet", {"text": "string"})
    with pytest.raises(SourceError, match=r"a\.parquet:1: .*none of its rows can be read"):
        list(read_rows(tmp_path / "a.parquet", spec, "a.parquet", lambda _: None))
