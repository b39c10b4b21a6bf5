from pathlib import Path

import pytest

from bench.errors import BenchError, ConfigError
from bench.runner import run
from bench.tokenizer_folder import tokenizer_folder

REVISION = "1f" * 20


@pytest.fixture
def hub_cache(tmp_path, monkeypatch) -> Path:
    """The Hub's cache as its client lays it out, and a Hub that cannot be reached."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


def cached_model(cache: Path, files: tuple[str, ...]) -> Path:
    root = cache / "models--org--model"
    snapshot = root / "snapshots" / REVISION
    snapshot.mkdir(parents=True)
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(REVISION)
    for name in files:
        (snapshot / name).write_text("{}")
    return snapshot


def test_a_folder_is_itself(tmp_path):
    assert tokenizer_folder(str(tmp_path)) == tmp_path
    assert tokenizer_folder("no-such-folder") == Path("no-such-folder"), "refused by whoever reads it"


def test_what_the_hubs_cache_holds_is_found_without_a_network(hub_cache):
    snapshot = cached_model(hub_cache, ("tokenizer.json", "tokenizer_config.json"))
    assert tokenizer_folder("org/model") == snapshot
    assert tokenizer_folder(f"org/model@{REVISION}") == snapshot


@pytest.mark.parametrize("name", ["org/other", "org/model@0000000"])
def test_a_model_that_cannot_be_had_is_one_line_with_a_remedy(hub_cache, name):
    cached_model(hub_cache, ("tokenizer.json",))
    with pytest.raises(ConfigError, match=rf"engine\.tokenizer: {name}: .*; give the folder") as refused:
        tokenizer_folder(name)
    assert "\n" not in str(refused.value)


def test_a_tokenizer_that_is_not_there_is_refused_ahead_of_the_server(configured, tmp_path):
    started = tmp_path / "started"
    serve = {"command": ["python3", "-c", f"open({str(started)!r}, 'w')"]}
    config = configured("http://127.0.0.1:9", engine={"tokenizer": str(tmp_path / "none"), "serve": serve})
    with pytest.raises(BenchError, match=r"no tokenizer\.json"):
        run(config, tmp_path / "run", lambda *_: None)
    assert not started.exists()
    assert not (tmp_path / "run").exists(), "nothing is written of a run that cannot start"
