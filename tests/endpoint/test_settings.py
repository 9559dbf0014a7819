"""Settings are read whole or refused, with the field and the remedy."""

from pathlib import Path

import pytest

from cheapgpu.endpoint.settings import (
    ModelSettings,
    Settings,
    SettingsError,
    UpstreamSettings,
    check,
    read_settings,
)

WHOLE = """
host = "0.0.0.0"
port = 8443
key_env = ["KEYS"]
heartbeat = 5

[[upstream]]
url = "http://127.0.0.1:8000/v1/chat/completions"
dialect = "vllm"
at_once = 128

[[upstream.model]]
id = "llama-3.1-8b"
engine_id = "meta-llama/Llama-3.1-8B-Instruct"
ceiling = 2048

[[upstream]]
gguf = "model.gguf"
[[upstream.model]]
id = "tiny"
"""


def written(folder: Path, text: str) -> Path:
    """A settings file."""
    file = folder / "endpoint.toml"
    file.write_text(text)
    return file


def test_a_file_of_settings_is_read(tmp_path: Path) -> None:
    """Every field has its value or its default."""
    settings = read_settings(written(tmp_path, WHOLE))
    assert settings.port == 8443
    assert settings.silence == 120
    assert settings.upstream[0].model == (
        ModelSettings(
            id="llama-3.1-8b", engine_id="meta-llama/Llama-3.1-8B-Instruct", ceiling=2048
        ),
    )
    assert settings.upstream[1].gguf == "model.gguf"


@pytest.mark.parametrize(
    ("find", "replace", "says"),
    [
        ("port = 8443", "port = 70000", "port: is 70000; wanted 0 to 65535"),
        ("port = 8443", 'port = "8443"', "port: expected `int`, got `str`"),
        ("port = 8443", "prot = 8443", "unknown field `prot`"),
        ("heartbeat = 5", "heartbeat = 0", "heartbeat: is 0; wanted 0.05 to 60"),
        ("heartbeat = 5", "metrics_port = -1", "metrics_port: is -1"),
        ("heartbeat = 5", 'path = "v1"', "path: wanted a path"),
        ("heartbeat = 5", 'path = "/v1?x"', "path: wanted a path"),
        ("heartbeat = 5", 'tls_cert = "c.pem"', "tls_cert, tls_key: one is given"),
        ('key_env = ["KEYS"]', "", "there is no key"),
        ("ceiling = 2048", "ceiling = 2147483648", r"upstream\[0\].model.ceiling: is 2.14748e\+09"),
        ("ceiling = 2048", "ceiling = true", r"upstream\[0\].model\[0\].ceiling: expected"),
        ('dialect = "vllm"', 'dialect = "vlm"', "'vlm' is not known; known are auto, vllm"),
        ("at_once = 128", "at_once = 0", r"upstream\[0\].at_once: is 0"),
        ("at_once = 128", 'gguf = "x"', r"upstream\[0\]: give either url or gguf"),
        ('gguf = "model.gguf"', "", r"upstream\[1\]: give either url or gguf"),
        ('gguf = "model.gguf"', 'gguf = "m"\ndialect = "tgi"', "served by llama.cpp"),
        ('id = "tiny"', 'id = "llama-3.1-8b"', "is declared twice"),
        ('id = "tiny"', 'id = ""', "model.id: has 0 characters"),
        ('[[upstream.model]]\nid = "tiny"', "", r"upstream\[1\].model: there is none"),
        ("[[upstream.model]]", "[[upstream.modell]]", "unknown field `modell`"),
        ("port = 8443", "port =", "is not TOML"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_name(
    tmp_path: Path, find: str, replace: str, says: str
) -> None:
    """The message names the file, the field, what stands there and what is wanted."""
    assert find in WHOLE
    file = written(tmp_path, WHOLE.replace(find, replace, 1))
    with pytest.raises(SettingsError, match=says) as caught:
        read_settings(file)
    assert str(file) in str(caught.value)


def test_settings_without_an_engine_are_refused(tmp_path: Path) -> None:
    """An endpoint stands before something; and a file must be there."""
    with pytest.raises(SettingsError, match="upstream: there is none"):
        check(Settings(key_env=("KEYS",)))
    with pytest.raises(SettingsError, match="No such file"):
        read_settings(tmp_path / "none.toml")


def test_one_upstream_is_named_without_a_number() -> None:
    """Options give one upstream: its messages name the field alone."""
    upstream = UpstreamSettings(url="http://127.0.0.1/x", slots=0, model=(ModelSettings(id="m"),))
    with pytest.raises(SettingsError, match=r"^upstream\.slots: is 0; wanted 1 to 256"):
        check(Settings(key_env=("KEYS",), upstream=(upstream,)))


def test_the_size_of_a_request_can_be_allowed(tmp_path: Path) -> None:
    """A larger body is a setting; one beyond all reason is refused."""
    file = written(tmp_path, WHOLE.replace("port = 8443", "request_bytes = 8_388_608"))
    assert read_settings(file).request_bytes == 8 << 20
    wrong = written(tmp_path, WHOLE.replace("port = 8443", "request_bytes = 1_000_000_000"))
    with pytest.raises(SettingsError, match="request_bytes: is 1e"):
        read_settings(wrong)
