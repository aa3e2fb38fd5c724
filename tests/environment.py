"""A virtual environment for a check against another program, made at its first run and kept.

It is not called venv, since `python -m venv` in this folder would then run this file.
"""

import pathlib
import subprocess
import sys
import typing

INSTALL_SECONDS_MAX = 300


def install(
    venv: pathlib.Path,
    requirements: pathlib.Path,
    skip: typing.Callable[[str], typing.NoReturn],
) -> pathlib.Path:
    """Makes the environment unless it already holds these very requirements; answers its Python.

    Where it cannot be made, `skip` is called with the reason and ends the program.
    """
    python = venv / "bin" / "python"
    stamp = venv / "installed.txt"
    if stamp.exists() and stamp.read_text() == requirements.read_text():
        return python
    make = [sys.executable, "-m", "venv", "--clear", str(venv)]
    fill = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    fill += ["--no-deps", "--requirement", str(requirements)]
    commands = [
        (make, "this Python makes no virtual environments"),
        (fill, "its packages could not be installed"),
    ]
    for command, reason in commands:
        try:
            subprocess.run(command, check=True, timeout=INSTALL_SECONDS_MAX)
        except (OSError, subprocess.SubprocessError) as error:
            skip(f"{reason} ({error})")
    stamp.write_text(requirements.read_text())
    return python
