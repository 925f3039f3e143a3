"""`joinery secret`: rotation of the operator's secret for encryption and signatures."""

from pathlib import Path
from typing import Any

from domain.secrets.model import SecretsOverview, SecretState
from domain.secrets.ports import EncryptedValues, KeyRingStore, Vault
from domain.secrets.usecases.status import read_secrets_overview
from entrypoints.cli.store import DEFAULT_OPTIONS, CommandOptions, select_attributes
from entrypoints.errors import CommandError
from entrypoints.up import directory
from entrypoints.up.directory import DataDir
from ports.clock import Clock

_RESTART = "Restart `joinery up`: until then, its processes use the previous secret."


async def rotate(*, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Create a new operator's secret and keep the previous one until it is retired.

    With --data-dir, the new secret is stored there. Otherwise the variables to set are printed.
    """
    if options.data_dir is None:
        former = ",".join(options.read_settings().secrets)
        variables = {"JOINERY_SECRET": directory.generate_secret(), "JOINERY_SECRET_FORMER": former}
        lines = [
            "Nothing is changed yet. Set these variables for every process and restart all processes, in any order:",
            *(f"{name}={value}" for name, value in variables.items()),
        ]
        return options.print_result(variables, *lines)
    data = _get_data_directory(options.data_dir)
    count = directory.rotate_secret(data)
    sentence = f"{data.secret_file} contains the new secret and the former ones. {_RESTART}"
    return options.print_result({"rotated": True, "restart": True, "secrets": count}, sentence)


def _build_secret_json(secret: SecretState) -> dict[str, Any]:
    """Return the state of a secret as JSON, without the secret itself."""
    return select_attributes(secret, "id", "values") | {"known": secret.is_available, "in_force": secret.is_active}


async def status(*, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Show how many stored values are encrypted with each operator's secret."""
    status_, obstacles = await _read_status(options)
    result = {
        "secrets": [_build_secret_json(secret) for secret in status_.secrets],
        "since": status_.active_since.isoformat(),
        "lacking": status_.outdated_connections,
        "hindrances": obstacles,
        "retirable": not obstacles,
    }
    lines = []
    for number, secret in enumerate(status_.secrets):
        role = "not available" if not secret.is_available else "former" if number else "current"
        values = ", ".join(f"{count} {kind}" for kind, count in sorted(secret.values.items())) or "nothing"
        lines.append(f"{secret.id}  {role}{', in use' if secret.is_active else ''}: {values}")
    if any(secret.is_available for secret in status_.secrets[1:]):
        lines += obstacles or ["You can retire the former secrets with `joinery secret retire`."]
    return options.print_result(result, *lines)


async def retire(*, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Retire the former operator's secrets; refused while stored values or processes need one."""
    status_, obstacles = await _read_status(options)
    if obstacles:
        raise CommandError(" ".join(("The former secrets are still needed.", *obstacles)))
    former = [secret.id for secret in status_.secrets[1:] if secret.is_available]
    sentence = "There are no former secrets."
    if options.data_dir is not None:
        data = _get_data_directory(options.data_dir)
        directory.remove_secrets(data, options.read_settings().former_secrets)
        sentence = f"{data.secret_file} contains only the current secret. Restart the processes to remove the others from memory."
    elif former:
        sentence = (
            "The former secrets are no longer needed. Remove JOINERY_SECRET_FORMER from the settings of all processes."
        )
    return options.print_result({"retired": former}, sentence)


def _get_data_directory(path: Path) -> DataDir:
    """Return the data directory at a path. Raises CommandError if the directory contains no secret."""
    data = DataDir(path)
    if not data.secret_file.exists():
        raise CommandError(
            f"{data.path} contains no secret. If its processes use JOINERY_SECRET, change that variable."
        )
    return data


async def _read_status(options: CommandOptions) -> tuple[SecretsOverview, list[str]]:
    """Return the status of the secrets, and the reasons why the former secrets cannot be retired yet."""
    async with options.open_dependencies() as dependencies:
        status_ = await read_secrets_overview(
            dependencies[KeyRingStore], dependencies[EncryptedValues], dependencies[Vault], dependencies[Clock]
        )
    obstacles = list(status_.obstacles)
    if options.data_dir is not None:
        current = directory.read_secrets(_get_data_directory(options.data_dir))[0]
        if options.read_settings().secret != current:  # running processes still use the previous one
            obstacles.insert(0, _RESTART)
    return status_, obstacles
