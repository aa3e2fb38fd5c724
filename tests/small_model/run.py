#!/usr/bin/env python3
"""Runs a check, or a command, against a real small language model on this machine.

    tests/small_model/run.py                      one streaming chat completion, checked
    tests/small_model/run.py COMMAND [ARGUMENT]…  the check, then COMMAND with ADJUTANT_TEST_MODEL_URL set

The packages go into target/small-model (a virtual environment made at the first run).
Exit codes: 0 good, 1 the check failed, 77 not possible here (the last line says why),
otherwise that of COMMAND.
"""

import json
import os
import pathlib
import subprocess
import sys
import typing
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from environment import install

TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent.parent / "target"))
VENV = TARGET / "small-model"
REQUIREMENTS = HERE / "requirements.txt"
SKIPPED = 77
REQUEST_SECONDS_MAX = 120
SERVER_STOP_SECONDS_MAX = 10


def skip(reason: str) -> typing.NoReturn:
    print(f"skipped: small model because {reason}", flush=True)
    raise SystemExit(SKIPPED)


def ready_url(server: subprocess.Popen) -> str:
    """The address the server prints once it can answer."""
    for line in server.stdout:
        if line.startswith("ready: "):
            return line.removeprefix("ready: ").strip()
    raise SystemExit(f"the model server ended with code {server.wait()} before it was ready")


def stream(url: str) -> tuple[str, dict]:
    """One streaming chat completion: the text, and the usage the last chunk reports."""
    body = {
        "model": "smollm2-135m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 24,
        "messages": [{"role": "user", "content": "Say hello."}],
    }
    request = urllib.request.Request(
        f"{url}/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "authorization": "Bearer none"},
    )
    text, usage, ended = "", {}, False
    with urllib.request.urlopen(request, timeout=REQUEST_SECONDS_MAX) as answer:
        for line in answer:
            if not line.startswith(b"data: "):
                continue
            data = line.removeprefix(b"data: ").strip()
            if data == b"[DONE]":
                ended = True
                break
            chunk = json.loads(data)
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                text += choice["delta"].get("content") or ""
    if not ended:
        raise SystemExit("the stream broke off before its end")
    return text, usage


def check(url: str) -> None:
    """The answer must hold text and count what it cost; the same question must get the same answer."""
    text, usage = stream(url)
    if not text or not usage.get("prompt_tokens") or not usage.get("completion_tokens"):
        raise SystemExit(f"expected text and usage, got {text!r} and {usage!r}")
    again, _ = stream(url)
    if again != text:
        raise SystemExit(f"the same question got {text!r}, then {again!r}")
    print(
        f"small model answered {text!r} "
        f"({usage['prompt_tokens']} tokens in, {usage['completion_tokens']} out)",
        flush=True,
    )


def main() -> int:
    python = install(VENV, REQUIREMENTS, skip)
    server = subprocess.Popen(
        [str(python), str(HERE / "serve.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        url = ready_url(server)
        check(url)
        if len(sys.argv) < 2:
            return 0
        environment = os.environ | {"ADJUTANT_TEST_MODEL_URL": url}
        return subprocess.run(sys.argv[1:], env=environment, check=False).returncode
    finally:
        server.stdin.close()
        try:
            server.wait(SERVER_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            server.kill()


if __name__ == "__main__":
    raise SystemExit(main())
