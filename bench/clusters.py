"""A head, its workers and a client on virtual machines; what the client and the head then report."""
import contextlib
import dataclasses
import json
import os
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


def cpu_seconds(process):
    """Of all its threads so far: utime and stime of proc(5)."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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


def full_throughput(requests, clients):
    """Tokens a second while all clients had answers coming: from the last one's first token to the last request."""
    requests = sorted(requests, key=lambda request: request["sent"])
    begin = max(request["token_times"][0] for request in requests[:clients])
    end = requests[-1]["sent"]
    tokens = sum(begin <= time <= end for request in requests for time in request["token_times"])
    return tokens / (end - begin) if end > begin else None


def client_report(head, program, setup):
    with tempfile.TemporaryDirectory() as folder:
        each = pathlib.Path(folder) / "requests"
        report = client.report(client.command(program, f"http://127.0.0.1:{PORT}", setup, "--random-input-len", setup.prompt,
                                              "--random-range-ratio", setup.length_ratio, "--save-requests", each),
                               setup, setup.name, head.run)
        requests = [json.loads(line) for line in each.read_text().splitlines()]
    keys = ["output_throughput", "median_ttft_ms", "median_itl_ms", "p99_itl_ms", "duration", "total_input_tokens",
            "total_output_tokens"]
    return {key: report[key] for key in keys} | {"full_throughput": full_throughput(requests, setup.clients),
                                                 "client_cpu_share": report["headrace"]["client_cpu_share"]}


def shapes(program, model):
    return json.loads(subprocess.run([program, "inspect", model, "--json"], capture_output=True, check=True).stdout)["shapes"]


def measure(setup, program, model, environment):
    """The client's report of one run, with that of the head about its machines."""
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile())
        head, *workers = stack.enter_context(VirtualNetwork(setup.machines, setup.rate_mbit)).machines
        processes = []
        for worker in workers:
            cache = stack.enter_context(tempfile.TemporaryDirectory())
            processes.append(stack.enter_context(started(worker, [*worker_command(program), "--model", model], log,
                                                         environment | {"HEADRACE_CACHE": cache})))
        time.sleep(0.5)
        process = stack.enter_context(started(head, head_command(program, model, workers, setup.flags), log, environment))
        wait_ready(head, process, log)
        processes.insert(0, process)
        before = get(head, "/v1/cluster")
        if setup.client_core is not None:
            head.core = setup.client_core
        begin, used = time.monotonic(), [cpu_seconds(each) for each in processes]
        result = client_report(head, program, setup)
        seconds = time.monotonic() - begin
        result["cpu_shares"] = [(cpu_seconds(each) - so_far) / seconds for each, so_far in zip(processes, used)]
        after = get(head, "/v1/cluster")
        if workers:
            result |= {"placement": after["placement"], "steps": after["steps"] - before["steps"],
                       "steps_in_flight_limit": after["steps_in_flight_limit"], "imbalance": after["imbalance"], "nodes": node_figures(before, after)}
            # The last token of an answer goes through no layer.
            tokens = result["total_input_tokens"] + result["total_output_tokens"] - setup.requests
            result["bytes_per_token"] = result["nodes"][0]["link"]["sent_bytes"] / tokens
            result["shapes"] = shapes(program, model)
        return result
