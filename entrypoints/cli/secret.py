"""`joinery secret`: having another secret take the place of the one that everything stands under."""

from pathlib import Path

from domain.secrets.model import SecretStatus
from domain.secrets.ports import KeyRings, SealedValues, Vault
from domain.secrets.usecases.status import secret_status
from entrypoints.cli.store import DEFAULT, Store, attributes
from entrypoints.errors import CommandError
from entrypoints.up import directory
from entrypoints.up.directory import DataDir
from ports.clock import Clock

_RESTART = "Restart `joinery up`: until then its processes go on with the secret before."


async def rotate(*, store: Store = DEFAULT) -> int:
    """Have a new secret take the place of the current one: in the data directory, or printed for the environment."""
    if store.data_dir is None:
        former = ",".join(store.settings().secrets)
        variables = {"JOINERY_SECRET": directory.new_secret(), "JOINERY_SECRET_FORMER": former}
        lines = [
            "Nothing is changed yet. Set these for every process, and restart each; their order does not matter:",
            *(f"{name}={value}" for name, value in variables.items()),
        ]
        return store.answer(variables, *lines)
    data = _directory(store.data_dir)
    count = directory.rotate_secret(data)
    sentence = f"{data.secret_file} holds a new secret, and the former ones beside it. {_RESTART}"
    return store.answer({"rotated": True, "restart": True, "secrets": count}, sentence)


async def status(*, store: Store = DEFAULT) -> int:
    """Tell how much stands under which secret."""
    found, hindrances = await _look(store)
    answer = {
        "secrets": [attributes(one, "id", "known", "in_force", "values") for one in found.secrets],
        "since": found.since.isoformat(),
        "lacking": found.lacking,
        "hindrances": hindrances,
        "retirable": not hindrances,
    }
    lines = []
    for number, one in enumerate(found.secrets):
        role = "not at hand" if not one.known else "former" if number else "current"
        values = ", ".join(f"{count} {kind}" for kind, count in sorted(one.values.items())) or "nothing"
        lines.append(f"{one.id}  {role}{', in force' if one.in_force else ''}: {values}")
    if any(one.known for one in found.secrets[1:]):
        lines += hindrances or ["The former secrets may be retired: `joinery secret retire`."]
    return store.answer(answer, *lines)


async def retire(*, store: Store = DEFAULT) -> int:
    """Do without the former secrets; refused while anything needs one."""
    found, hindrances = await _look(store)
    if hindrances:
        raise CommandError(" ".join(("The former secrets are still needed.", *hindrances)))
    former = [one.id for one in found.secrets[1:] if one.known]
    sentence = "There are no former secrets."
    if store.data_dir is not None:
        data = _directory(store.data_dir)
        directory.forget_secrets(data, store.settings().former_secrets)
        sentence = (
            f"{data.secret_file} holds the current secret alone. Processes forget the others when they are restarted."
        )
    elif former:
        sentence = "Nothing needs them any more: take JOINERY_SECRET_FORMER out of every process's settings."
    return store.answer({"retired": former}, sentence)


def _directory(path: Path) -> DataDir:
    data = DataDir(path)
    if not data.secret_file.exists():
        raise CommandError(f"{data.path} keeps no secret of its own; set JOINERY_SECRET where it is set now.")
    return data


async def _look(store: Store) -> tuple[SecretStatus, list[str]]:
    """Return what stands under which secret, and what hinders doing without the former ones."""
    async with store.open() as parts:
        found = await secret_status(parts[KeyRings], parts[SealedValues], parts[Vault], parts[Clock])
    hindrances = list(found.hindrances)
    if store.data_dir is not None:
        current = directory.kept_secrets(_directory(store.data_dir))[0]
        if store.settings().secret != current:  # the processes that run still have to be given it
            hindrances.insert(0, _RESTART)
    return found, hindrances
