from __future__ import annotations

from typing import Any

import pytest

from sources.adapters import repobench_java, repobench_python
from sources.base import Rejected
from sources.passages import Part, Passage

ROW = {
    "repo_name": "psf/requests",
    "file_path": "src/api.py",
    "context": [{"identifier": "f", "path": "src/f.py", "snippet": "def f(): ..."},
                {"identifier": "", "path": "", "snippet": ""}],
    "import_statement": "from f import f",
    "cropped_code": "def g():\n",
    "all_code": "def g():\n    return f()\n\n\nx = g()\n",
    "next_line": "    return f()",
}  # fmt: skip


def read(memory_files: Any, **values: Any) -> Any:
    files = memory_files(repobench_python.SPEC, {"in_file": [{**ROW, **values}]})
    (item,) = repobench_python.parse(files)
    return item


def test_a_place_to_complete(memory_files: Any) -> None:
    passage = read(memory_files)
    assert isinstance(passage, Passage)
    assert passage.text == "from f import f\ndef g():\n"
    assert passage.answer == "    return f()\n\n\nx = g()\n"
    assert passage.parts == (Part("src/f.py", "def f(): ..."),)
    assert (passage.title, passage.group, passage.license, passage.task) == (
        "src/api.py",
        "psf/requests",
        "Apache-2.0",
        "python",
    )


def test_the_line_alone_where_the_whole_file_does_not_go_on_with_it(memory_files: Any) -> None:
    assert read(memory_files, all_code="another file").answer == "    return f()"


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"repo_name": "nobody/unknown"}, "nobody/unknown is not known to be permissive"),
        ({"next_line": "  "}, "blank"),
        ({"cropped_code": "", "import_statement": None}, "no code"),
    ],
)
def test_rows_that_are_rejected(memory_files: Any, values: dict[str, Any], word: str) -> None:
    item = read(memory_files, **values)
    assert isinstance(item, Rejected)
    assert word in item.reason


def test_one_place_in_two_settings_is_rejected_the_second_time(memory_files: Any) -> None:
    files = memory_files(repobench_python.SPEC, {"in_file": [ROW], "cross_file_first": [ROW]})
    kept, again = repobench_python.parse(files)
    assert isinstance(kept, Passage)
    assert isinstance(again, Rejected)


def test_the_java_adapter_differs_in_its_facts_alone(memory_files: Any) -> None:
    (passage,) = repobench_java.parse(memory_files(repobench_java.SPEC, {"in_file": [ROW]}))
    assert isinstance(passage, Passage)
    assert (passage.source, passage.task) == ("repobench_java", "java")
    assert repobench_java.SPEC.repo == "tianyang/repobench_java_v1.1"
