"""Execution of programs, and installation of npm packages."""

import os
import subprocess
from pathlib import Path

NPM = {
    "@modelcontextprotocol/client": "2.4.0",
    "@modelcontextprotocol/conformance": "0.1.16",
    "@modelcontextprotocol/sdk": "1.32.2",
    "@types/node": "22.19.1",
    "esbuild": "0.27.0",
    "mcp-remote": "0.15.1",
    "node": "22.23.3",
    "openapi-fetch": "0.17.0",
    "openapi-typescript": "7.13.0",
    "oauth4webapi": "3.8.8",
    "openid-client": "6.8.9",
    "standardwebhooks": "1.1.1",
    "typescript": "5.9.3",
}


def run(*argv: str | Path, cwd: Path, **env: str) -> str:
    """Run the program; return its output. Fails on a non-zero exit code."""
    words = [str(part) for part in argv]
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{words}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def npm_install(folder: Path, *packages: str) -> None:
    """Install npm packages in the folder: those of NPM by name, others by address."""
    wanted = [f"{name}@{NPM[name]}" if name in NPM else name for name in packages]
    (folder / "package.json").write_text('{"name": "tests", "private": true, "type": "module"}')
    run("npm", "install", "--no-audit", "--no-fund", "--silent", *wanted, cwd=folder)
