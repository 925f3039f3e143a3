"""`joinery secret`: having another secret take the place of the one that everything stands under."""

import argparse
import json
from pathlib import Path
from typing import Any

from domain.secrets.model import SecretStatus
from domain.secrets.usecases.status import secret_status
from entrypoints import settings
from entrypoints.cli.errors import CommandError
from entrypoints.cli.orgs import container, environment
from entrypoints.up import directory
from entrypoints.up.directory import DataDir

_RESTART = "Restart `joinery up`: until then its processes go on with the secret before."


async def rotate(options: argparse.Namespace) -> int:
    """`joinery secret rotate`: a new secret in the data directory, or what to set where the environment names it."""
    if options.data_dir is None:
        before = settings.from_environment(environment(options)).secrets
        told = {"JOINERY_SECRET": directory.new_secret(), "JOINERY_SECRET_FORMER": ",".join(before)}
        lines = [f"{name}={value}" for name, value in told.items()]
        said = "Nothing is changed yet. Set these for every process, and restart each; their order does not matter:"
        return _told(options, told, "\n".join([said, *lines]))
    data = _data(options.data_dir)
    count = directory.rotate_secret(data)
    said = f"{data.secret_file} holds a new secret, and the former ones beside it. {_RESTART}"
    return _told(options, {"rotated": True, "restart": True, "secrets": count}, said)


async def status(options: argparse.Namespace) -> int:
    """`joinery secret status`: what stands under which secret."""
    found, waiting = await _status(options), _hindrances_of_the_directory(options)
    hindrances = (*waiting, *found.hindrances)
    answer = {
        "secrets": [
            {"id": one.id, "known": one.known, "in_force": one.in_force, "values": dict(one.values)}
            for one in found.secrets
        ],
        "since": found.since.isoformat(),
        "lacking": found.lacking,
        "hindrances": list(hindrances),
        "retirable": not hindrances,
    }
    return _told(options, answer, "\n".join(_lines(found, hindrances)))


async def retire(options: argparse.Namespace) -> int:
    """`joinery secret retire`: do without the former secrets. Raises CommandError while anything needs one."""
    found = await _status(options)
    if hindrances := (*_hindrances_of_the_directory(options), *found.hindrances):
        raise CommandError(" ".join(("The former secrets are still needed.", *hindrances)))
    former = [one.id for one in found.secrets[1:] if one.known]
    if options.data_dir is None:
        said = "Nothing needs them any more: take JOINERY_SECRET_FORMER out of every process's settings."
        return _told(options, {"retired": former}, said if former else "There are no former secrets.")
    data = _data(options.data_dir)
    directory.forget_secrets(data, settings.from_environment(environment(options)).former_secrets)
    said = f"{data.secret_file} holds the current secret alone. Processes forget the others when they are restarted."
    return _told(options, {"retired": former}, said)


def _data(path: Path) -> DataDir:
    data = DataDir(path.expanduser().absolute())
    if not data.secret_file.exists():
        raise CommandError(f"{data.path} keeps no secret of its own; set JOINERY_SECRET where it is set now.")
    return data


async def _status(options: argparse.Namespace) -> SecretStatus:
    async with container(options) as parts:
        return await secret_status(parts.key_rings(), parts.sealed_values(), parts.vault(), parts.clock())


def _hindrances_of_the_directory(options: argparse.Namespace) -> tuple[str, ...]:
    """Whether the processes that run still have to be given what the data directory keeps."""
    if options.data_dir is None:
        return ()
    data = _data(options.data_dir)
    running = settings.from_environment(environment(options)).secret
    return () if running == directory.kept_secrets(data)[0] else (_RESTART,)


def _lines(found: SecretStatus, hindrances: tuple[str, ...]) -> list[str]:
    lines = []
    for number, one in enumerate(found.secrets):
        role = "not at hand" if not one.known else "former" if number else "current"
        values = ", ".join(f"{count} {kind}" for kind, count in sorted(one.values.items())) or "nothing"
        lines.append(f"{one.id}  {role}{', in force' if one.in_force else ''}: {values}")
    if any(one.known for one in found.secrets[1:]):
        lines += hindrances or ("The former secrets may be retired: `joinery secret retire`.",)
    return lines


def _told(options: argparse.Namespace, answer: dict[str, Any], sentence: str) -> int:
    print(json.dumps(answer) if options.json else sentence)
    return 0
