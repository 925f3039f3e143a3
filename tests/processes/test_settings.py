"""Settings of processes: secrets, the model provider, and when sources are degraded (docs/configuration.md)."""

import os
from importlib.metadata import version
from pathlib import Path

import pytest

from adapters.pydantic_ai.scripted import MODEL_NAME
from entrypoints.cli.main import main
from entrypoints.errors import SettingsError
from entrypoints.factories import create_pydantic_models
from entrypoints.operations.validation import JsonSchemaValidator
from entrypoints.settings import Settings, read_settings, resolve_file_settings

CURRENT, FORMER, OLDER = ("c" * 32, "f" * 32, "o" * 40)


def read_secrets(former: str) -> tuple[str, ...]:
    """Return the secrets of a process with these former ones."""
    env = {"JOINERY_DATABASE_URL": "postgresql://x", "JOINERY_SECRET": CURRENT, "JOINERY_SECRET_FORMER": former}
    return read_settings(env).secrets


def test_former_secrets_follow_the_current_one() -> None:
    assert read_secrets("") == read_secrets(" , ") == read_secrets(CURRENT) == (CURRENT,)
    assert read_secrets(f"{FORMER}, {OLDER},{FORMER},{CURRENT}") == (CURRENT, FORMER, OLDER)


def test_short_secrets_are_refused() -> None:
    with pytest.raises(SettingsError, match="JOINERY_SECRET_FORMER .* at least 32 characters"):
        read_secrets(f"{FORMER},short")


def read_thresholds(**env: str) -> tuple[int, int]:
    """Return the thresholds of failed runs of a process."""
    found = read_settings({"JOINERY_DATABASE_URL": "postgresql://x", "JOINERY_SECRET": CURRENT, **env})
    return found.degraded_after, found.blocked_after


def test_thresholds_of_source_health() -> None:
    assert read_thresholds() == (3, 10)
    assert read_thresholds(JOINERY_DEGRADED_AFTER="1", JOINERY_BLOCKED_AFTER="2") == (1, 2)
    for wrong in ({"JOINERY_DEGRADED_AFTER": "0"}, {"JOINERY_DEGRADED_AFTER": "5", "JOINERY_BLOCKED_AFTER": "4"}):
        with pytest.raises(SettingsError, match="JOINERY_BLOCKED_AFTER at least"):
            read_thresholds(**wrong)


def read_model_settings(models: str, **more: str) -> Settings:
    """Load the settings of a process with these models."""
    return read_settings(
        {"JOINERY_DATABASE_URL": "postgresql://x", "JOINERY_SECRET": CURRENT, "JOINERY_MODELS": models, **more}
    )


def test_no_model_is_used_unless_one_is_set(tmp_path: Path) -> None:
    assert (
        read_model_settings("").models is None
        and create_pydantic_models(read_model_settings(" "), JsonSchemaValidator()) is None
    )
    for unknown in ("openai:gpt", "scripted:script.json", "https://models.example/"):
        with pytest.raises(SettingsError, match="JOINERY_MODELS must be"):
            read_model_settings(unknown)
    with pytest.raises(SettingsError, match=r"JOINERY_MODELS .*missing\.json"):
        create_pydantic_models(read_model_settings(f"scripted://{tmp_path}/missing.json"), JsonSchemaValidator())
    script = tmp_path / "a script.json"
    script.write_text('{"answers": []}', "utf-8")
    models = create_pydantic_models(read_model_settings("scripted:" + script.as_uri()[5:]), JsonSchemaValidator())
    assert models is not None and models.is_configured(MODEL_NAME) and not models.is_configured("other")


PRICED = {"JOINERY_MODEL": "small-1", "JOINERY_MODEL_PRICES": "small-1=250000/2000000, own/x:7b=0/0"}
KEY = "sk-Ab3dEf6hIjKlMnOp"


def test_a_model_provider_is_configured(tmp_path: Path) -> None:
    for api, url in (("openai", "https://api.openai.com/v1"), ("anthropic", "https://api.anthropic.com")):
        settings = read_model_settings(api, JOINERY_MODELS_KEY=KEY, **PRICED)
        found = settings.provider
        assert found is not None and (found.url, found.model, found.key) == (url, "small-1", KEY)
        assert KEY not in repr(settings)
        models = create_pydantic_models(settings, JsonSchemaValidator())
        assert models is not None and KEY not in repr(models)
        assert models.is_configured(None) and models.is_configured("own/x:7b") and not models.is_configured("other")
    own = read_model_settings("openai", JOINERY_MODELS_URL="http://localhost:8000/v1/", **PRICED).provider
    assert own is not None and (own.url, own.key) == ("http://localhost:8000/v1", None)
    named = {"JOINERY_MODELS_URL": "http://models:8000", "JOINERY_ALLOW_PRIVATE_HOSTS": "models:8000"}
    assert read_model_settings("openai", **named, **PRICED).provider is not None


def test_a_bare_name_has_the_list_price_of_the_provider() -> None:
    names = {"JOINERY_MODELS_KEY": KEY, "JOINERY_MODEL": "own", "JOINERY_MODEL_PRICES": "own=1/2,gpt-4o, gpt-5.4"}
    found = read_model_settings("openai", **names).provider
    assert found is not None and found.prices["own"] == (1, 2) and found.prices["gpt-4o"] == (2_500_000, 10_000_000)
    assert found.prices["gpt-5.4"] == (5_000_000, 22_500_000), "the price of the longest input"
    for api, name, url in (
        ("openai", "gpt-4o-foo", ""),
        ("openai", "claude-sonnet-4-5", ""),
        ("anthropic", "gpt-4o", ""),
        ("openai", "whisper-1", ""),
        ("openai", "gpt-4o", "https://models.example/v1"),
    ):
        unknown = {**names, "JOINERY_MODEL_PRICES": f"own=1/2,{name}", "JOINERY_MODELS_URL": url}
        with pytest.raises(SettingsError, match=f"JOINERY_MODEL_PRICES names `{name}` without a price"):
            read_model_settings(api, **unknown)


def test_tasks_are_routed_to_models() -> None:
    settings = read_model_settings(
        "openai", JOINERY_MODELS_KEY=KEY, JOINERY_MODEL_ROUTES="matching=own/x:7b, assistant = small-1", **PRICED
    )
    models = create_pydantic_models(settings, JsonSchemaValidator())
    assert models is not None
    names = [models.get_model_name(task, None) for task in ("matching.judge", "mappings.ask", "assistant")]
    assert names == ["own/x:7b", "small-1", "small-1"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"JOINERY_MODELS_KEY": ""}, "JOINERY_MODELS_KEY is not set"),
        ({"JOINERY_MODELS_KEY": "a\nb-secret"}, "JOINERY_MODELS_KEY must have"),
        ({"JOINERY_MODEL": ""}, "JOINERY_MODEL must name"),
        ({"JOINERY_MODEL": "other"}, "JOINERY_MODEL must name"),
        ({"JOINERY_MODEL_PRICES": "small-1=0.25/2"}, "JOINERY_MODEL_PRICES must be"),
        ({"JOINERY_MODEL_PRICES": "small-1=-1/2"}, "JOINERY_MODEL_PRICES must be"),
        ({"JOINERY_MODEL_ROUTES": "matching=other"}, "JOINERY_MODEL_ROUTES names 'other', which is not in"),
        ({"JOINERY_MODEL_ROUTES": "matching"}, "JOINERY_MODEL_ROUTES names '', which is not in"),
        ({"JOINERY_MODEL_ROUTES": "billing=small-1"}, "JOINERY_MODEL_ROUTES must be .* not 'billing'"),
        ({"JOINERY_MODELS_URL": "http://models.example/v1"}, "JOINERY_MODELS_URL must be https"),
        ({"JOINERY_MODELS_URL": "ftp://localhost"}, "JOINERY_MODELS_URL must be an http"),
        ({"JOINERY_MODELS_URL": "https://user:pass@models.example"}, "JOINERY_MODELS_URL must be an http"),
        ({"JOINERY_MODELS_URL": "https://models.example:x"}, "JOINERY_MODELS_URL is not a valid URL"),
    ],
)
def test_an_invalid_provider_is_reported(changes: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as refused:
        read_model_settings("anthropic", **{"JOINERY_MODELS_KEY": KEY, **PRICED, **changes})
    assert KEY not in str(refused.value) and "secret" not in str(refused.value)


_GIVEN = {"JOINERY_DATABASE_URL": "postgresql://x/y", "JOINERY_SECRET": "x" * 32}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("JOINERY_SECRET", "s" * 32 + "\n", "s" * 32),
        ("JOINERY_SECRET", "s" * 32 + "\r\n", "s" * 32),
        ("JOINERY_DATABASE_URL", "postgresql://u:p@h/d", "postgresql://u:p@h/d"),
        ("JOINERY_ANYTHING", " \n\tblanks around are taken off \r\n\n", "blanks around are taken off"),
        ("JOINERY_SECRET", "\ufeff" + "s" * 32 + "\r\n", "s" * 32),
        ("JOINERY_SECRET_FORMER", "", ""),
        ("JOINERY_SECRET_FORMER", "\n", ""),
    ],
)
def test_settings_are_read_from_files(tmp_path: Path, name: str, text: str, expected: str) -> None:
    file = tmp_path / "value"
    file.write_bytes(text.encode())
    assert resolve_file_settings({f"{name}_FILE": str(file), "OTHER_FILE": "/nowhere"}) == {
        name: expected,
        "OTHER_FILE": "/nowhere",
    }


def test_invalid_files_are_named_and_never_shown(tmp_path: Path) -> None:
    (file := tmp_path / "secret").write_bytes(b"\xff" + b"s" * 40)
    for env in (
        {**_GIVEN, "JOINERY_REDIS_URL_FILE": str(tmp_path / "none")},
        {**_GIVEN, "JOINERY_SECRET_FILE": str(file)},
        {"JOINERY_DATABASE_URL": "x", "JOINERY_SECRET_FILE": str(file)},
        {**_GIVEN, "JOINERY_SMTP_URL_FILE": str(tmp_path)},
    ):
        with pytest.raises(SettingsError, match="_FILE") as refused:
            read_settings(env)
        assert "ssss" not in str(refused.value)


@pytest.mark.parametrize(
    "content",
    [
        b"s" * 40 + b"\0",
        b"s" * 40 + b"\n" + b"s" * 40,
        b"s" * 40 + b"\x1b[0m",
        b"s" * 40 + "\x85s".encode(),
        b"ssss\xff\xfe",
        "s".encode("utf-16") * 40,
        b"s" * ((64 << 10) + 1),
    ],
)
def test_files_without_a_setting_are_refused(tmp_path: Path, content: bytes) -> None:
    (file := tmp_path / "value").write_bytes(content)
    with pytest.raises(SettingsError, match="JOINERY_SECRET_FILE") as refused:
        resolve_file_settings({"JOINERY_SECRET_FILE": str(file)})
    assert "ssss" not in str(refused.value)


def test_devices_and_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    for path in (pipe, "/dev/zero", "/dev/null", tmp_path, "a\0b"):
        with pytest.raises(SettingsError, match="JOINERY_SECRET_FILE"):
            resolve_file_settings({"JOINERY_SECRET_FILE": str(path)})


def test_a_missing_plugin_list_is_reported(tmp_path: Path) -> None:
    assert read_settings(_GIVEN).plugins_file == "plugins.toml"
    for missing in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(SettingsError, match="JOINERY_PLUGINS"):
            read_settings({**_GIVEN, "JOINERY_PLUGINS": str(missing)})


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"joinery {version('joinery')}\n"
