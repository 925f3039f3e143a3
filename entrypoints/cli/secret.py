"""`joinery secret`: rotation of the secret for encryption and signatures."""

from pathlib import Path

from domain.secrets.model import SecretStatus
from domain.secrets.ports import KeyRings, SealedValues, Vault
from domain.secrets.usecases.status import secret_status
from entrypoints.cli.store import DEFAULT, Store, attributes
from entrypoints.errors import CommandError
from entrypoints.up import directory
from entrypoints.up.directory import DataDir
from ports.clock import Clock

_RESTART = "Restart `joinery up`: until then, its processes use the previous secret."


async def rotate(*, store: Store = DEFAULT) -> int:
    """Replace the current secret by a new one: in the data directory, or printed for the environment."""
    if store.data_dir is None:
        former = ",".join(store.settings().secrets)
        variables = {"JOINERY_SECRET": directory.new_secret(), "JOINERY_SECRET_FORMER": former}
        lines = [
            "Nothing is changed yet. Set these variables for every process and restart all processes, in any order:",
            *(f"{name}={value}" for name, value in variables.items()),
        ]
        return store.answer(variables, *lines)
    data = _directory(store.data_dir)
    count = directory.rotate_secret(data)
    sentence = f"{data.secret_file} contains the new secret and the former ones. {_RESTART}"
    return store.answer({"rotated": True, "restart": True, "secrets": count}, sentence)


async def status(*, store: Store = DEFAULT) -> int:
    """Show how many values each secret protects."""
    status_, obstacles = await _read_status(store)
    answer = {
        "secrets": [attributes(secret, "id", "known", "in_force", "values") for secret in status_.secrets],
        "since": status_.since.isoformat(),
        "lacking": status_.lacking,
        "hindrances": obstacles,
        "retirable": not obstacles,
    }
    lines = []
    for number, secret in enumerate(status_.secrets):
        role = "not available" if not secret.known else "former" if number else "current"
        values = ", ".join(f"{count} {kind}" for kind, count in sorted(secret.values.items())) or "nothing"
        lines.append(f"{secret.id}  {role}{', in force' if secret.in_force else ''}: {values}")
    if any(secret.known for secret in status_.secrets[1:]):
        lines += obstacles or ["You can retire the former secrets with `joinery secret retire`."]
    return store.answer(answer, *lines)


async def retire(*, store: Store = DEFAULT) -> int:
    """Retire the former secrets; refused while one is still needed."""
    status_, obstacles = await _read_status(store)
    if obstacles:
        raise CommandError(" ".join(("The former secrets are still needed.", *obstacles)))
    former = [secret.id for secret in status_.secrets[1:] if secret.known]
    sentence = "There are no former secrets."
    if store.data_dir is not None:
        data = _directory(store.data_dir)
        directory.forget_secrets(data, store.settings().former_secrets)
        sentence = f"{data.secret_file} contains only the current secret. Restart the processes to remove the others from memory."
    elif former:
        sentence = (
            "The former secrets are no longer needed. Remove JOINERY_SECRET_FORMER from the settings of all processes."
        )
    return store.answer({"retired": former}, sentence)


def _directory(path: Path) -> DataDir:
    data = DataDir(path)
    if not data.secret_file.exists():
        raise CommandError(f"{data.path} contains no secret. Change JOINERY_SECRET where it is set.")
    return data


async def _read_status(store: Store) -> tuple[SecretStatus, list[str]]:
    """Return the values that each secret protects, and the obstacles to retiring the former ones."""
    async with store.open() as parts:
        status_ = await secret_status(parts[KeyRings], parts[SealedValues], parts[Vault], parts[Clock])
    obstacles = list(status_.hindrances)
    if store.data_dir is not None:
        current = directory.kept_secrets(_directory(store.data_dir))[0]
        if store.settings().secret != current:  # running processes still use the previous one
            obstacles.insert(0, _RESTART)
    return status_, obstacles
