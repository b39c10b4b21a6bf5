import pytest

from bench.config import load_config, parse_config
from bench.errors import ConfigError

ENGINE = {"dialect": "vllm", "url": "http://127.0.0.1:8000"}


def test_an_unknown_key_is_named_with_its_file(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('[engine]\ndialect = "vllm"\nurl = "http://h"\ntemprature = 1\n', "utf-8")
    with pytest.raises(ConfigError, match=r"c\.toml: engine\.temprature: Extra inputs"):
        load_config(path)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({}, "engine: Field required"),
        ({"engine": {**ENGINE, "url": "localhost:8000"}}, r"engine\.url"),
        ({"engine": ENGINE, "load": {"mode": "poisson"}}, "rate_per_s must be given"),
        ({"engine": ENGINE, "load": {"mode": "trace"}}, "must name a file"),
        ({"engine": ENGINE, "load": {"concurrency": 0}}, r"load\.concurrency"),
        ({"engine": ENGINE, "limits": {"max_failed_share": 1.5}}, "max_failed_share"),
    ],
)
def test_what_cannot_be_is_refused(values, says):
    with pytest.raises(ConfigError, match=says):
        parse_config(values, "x")


def test_a_file_that_is_not_there_or_not_toml_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("= 3", "utf-8")
    with pytest.raises(ConfigError, match="not TOML"):
        load_config(tmp_path / "bad.toml")


def test_the_digest_is_of_what_can_change_a_trace():
    base = parse_config({"engine": ENGINE}, "x")
    assert parse_config({"engine": ENGINE, "client": {"workers": 3}}, "x").digest() == base.digest()
    assert parse_config({"engine": ENGINE, "limits": {"ttft_s": 1.0}}, "x").digest() == base.digest()
    for section in ({"sampling": {"seed": 1}}, {"load": {"concurrency": 2}}, {"data": {"limit": 3}}):
        assert parse_config({"engine": ENGINE, **section}, "x").digest() != base.digest()
