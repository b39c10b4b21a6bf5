"""Where Ada-LEval's two tasks lie, which two adapters read (Wang et al., 2024).

Each task has a file a length, plain JSON on a web server. No licence is stated: our rows are placeholders.
"""

from __future__ import annotations

from collections.abc import Mapping

from sources.base import FileSpec, SourceSpec
from sources.licenses import UNKNOWN

_CITATION = """@inproceedings{wang2024adaleval,
  title     = {Ada-LEval: Evaluating long-context LLMs with length-adaptable benchmarks},
  author    = {Wang, Chonghua and Duan, Haodong and Zhang, Songyang and Lin, Dahua and Chen, Kai},
  booktitle = {Proceedings of NAACL},
  year      = {2024}
}"""


def spec(name: str, task: str, tier: str, columns: Mapping[str, str], sizes: tuple[str, ...]) -> SourceSpec:
    """Return the facts of one task, whose files are `<name>_<size>.json`."""
    return SourceSpec(
        name=name,
        title=f"Ada-LEval {task}",
        repo="http://opencompass.openxlab.space/utils/AdaLEval",
        host="web",
        mirror="_web/AdaLEval",
        license=UNKNOWN,
        files={size: FileSpec(f"{name}_{size}.json", "json", columns) for size in sizes},
        feeds=(tier,),
        citation=_CITATION,
    )
