"""A head, its workers and a client on virtual machines; what the client and the head then report."""
import contextlib
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import client

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/e2e"))
from virtual_network import VirtualNetwork, can_run  # noqa: E402,F401

PORT = 8000
WORKER_PORT = 8100


@dataclasses.dataclass(frozen=True)
class Setup:
    """`machines`: (core, share of it or None) of the head and each worker. The client is on `client_core`."""
    name: str
    model: str
    machines: tuple
    clients: int
    requests: int
    prompt: int = 256
    output: int = 128
    length_ratio: float = 0
    flags: tuple = ()
    rate_mbit: int | None = 1000
    client_core: int | None = None  # default: the head's


def worker_command(program):
    return [program, "worker", "--listen", f"0.0.0.0:{WORKER_PORT}", "-t", 1]


def head_command(program, model, workers, flags):
    command = [program, "serve", model, "--port", PORT, "-t", 1, "--no-log-requests", *flags]
    return command + (["--workers", ",".join(f"{w.address}:{WORKER_PORT}" for w in workers)] if workers else [])


@contextlib.contextmanager
def started(machine, command, log, environment):
    process = machine.popen(command, stdout=log, stderr=log, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def run_on(machine, words):
    done = machine.run(words, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def get(machine, path):
    text = run_on(machine, ["curl", "-sf", "--max-time", 5, f"http://127.0.0.1:{PORT}{path}"])
    return json.loads(text) if text else None


def wait_ready(machine, process, log, seconds=600):
    end = time.monotonic() + seconds
    while run_on(machine, ["curl", "-sf", "--max-time", 5, f"http://127.0.0.1:{PORT}/health"]) is None:
        if process.poll() is not None or time.monotonic() > end:
            log.seek(0)
            sys.exit(f"error: the server is not ready\n{log.read()[-3000:].decode(errors='replace')}")
        time.sleep(0.3)


def node_figures(before, after):
    """What each machine did between two answers of /v1/cluster."""
    seconds = after["seconds"] - before["seconds"]
    return [{"name": now["name"], "units": now["units"], "kv_tokens": now.get("kv_tokens"),
             "busy_share": (now["busy_share"] * after["seconds"] - was["busy_share"] * before["seconds"]) / seconds,
             **{f"{part}_share": (now["seconds"][part] - was["seconds"][part]) / seconds for part in now["seconds"]},
             "link": {key: value - was["link"][key] if key.endswith("bytes") else value
                      for key, value in now.get("link", {}).items()}}
            for was, now in zip(before["nodes"], after["nodes"])]


def client_report(head, program, setup):
    report = client.report(client.command(program, f"http://127.0.0.1:{PORT}", setup, "--random-input-len", setup.prompt,
                                          "--random-range-ratio", setup.length_ratio), setup, setup.name, head.run)
    keys = ["output_throughput", "median_ttft_ms", "median_itl_ms", "p99_itl_ms", "duration", "total_input_tokens",
            "total_output_tokens"]
    return {key: report[key] for key in keys} | {"client_cpu_share": report["headrace"]["client_cpu_share"]}


def shapes(program, model):
    return json.loads(subprocess.run([program, "inspect", model, "--json"], capture_output=True, check=True).stdout)["shapes"]


def measure(setup, program, model, environment):
    """The client's report of one run, with that of the head about its machines."""
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile())
        head, *workers = stack.enter_context(VirtualNetwork(setup.machines, setup.rate_mbit)).machines
        for worker in workers:
            cache = stack.enter_context(tempfile.TemporaryDirectory())
            stack.enter_context(started(worker, [*worker_command(program), "--model", model], log,
                                        environment | {"HEADRACE_CACHE": cache}))
        time.sleep(0.5)
        process = stack.enter_context(started(head, head_command(program, model, workers, setup.flags), log, environment))
        wait_ready(head, process, log)
        before = get(head, "/v1/cluster")
        if setup.client_core is not None:
            head.core = setup.client_core
        result = client_report(head, program, setup)
        after = get(head, "/v1/cluster")
        if workers:
            result |= {"placement": after["placement"], "steps": after["steps"] - before["steps"],
                       "steps_in_flight_limit": after["steps_in_flight_limit"], "imbalance": after["imbalance"], "nodes": node_figures(before, after)}
            # The last token of an answer goes through no layer.
            tokens = result["total_input_tokens"] + result["total_output_tokens"] - setup.requests
            result["bytes_per_token"] = result["nodes"][0]["link"]["sent_bytes"] / tokens
            result["shapes"] = shapes(program, model)
        return result
