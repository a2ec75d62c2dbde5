"""From a [[models]] table to a client."""

import pytest

from calibrant.core.errors import InputError
from calibrant.models.study.config import ModelConfig
from calibrant.models.study.endpoints import open_client


def config(client, **options):
    return ModelConfig("mine", client, "m", "m", options)


def test_http_clients(monkeypatch):
    assert open_client(config("llamacpp")).endpoint == "http://127.0.0.1:8080/v1"
    monkeypatch.setenv("SOME_KEY", "x")
    client = open_client(config("openai", api_key_env="SOME_KEY", capabilities={"native_n": 2}))
    assert client.capabilities.native_n == 2


@pytest.mark.parametrize(
    ("client", "options", "message"),
    [
        ("llamacpp", {"base_ulr": "x"}, "did you mean 'base_url'"),
        ("vllm", {"api_key": "sk-1"}, "an API key is never written down"),
        ("openai", {"api_key_env": "NO_SUCH_KEY"}, "NO_SUCH_KEY holds no API key"),
        ("replay", {}, "a replay needs the path of a ledger"),
        ("replay", {"ledger": "nowhere.sqlite"}, "there is no ledger"),
        ("embedded", {"weights": "nowhere.gguf"}, "there is no such GGUF file"),
    ],
)
def test_mistakes_name_the_file_and_the_model(client, options, message):
    with pytest.raises(InputError) as error:
        open_client(config(client, **options), source="s/study.toml")
    assert "s/study.toml" in str(error.value)
    assert "models.mine: " in str(error.value)
    assert message in str(error.value)
    assert "sk-1" not in str(error.value)
