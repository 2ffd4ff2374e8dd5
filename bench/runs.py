"""Runs one case on every engine in turn."""
import json
import re
import statistics
import subprocess
import sys

import page


def output_of(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(str(part) for part in command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def machine_limits(headrace):
    return json.loads(output_of([headrace, "bench", "machine", "-o", "json"]))


def headrace_command(case, model, headrace):
    command = [headrace, "bench", model, "-t", case.threads, "-r", 1, "-o", "json", "--numerics", case.numerics]
    return command + {
        "prompt": ["-p", case.size, "-n", 0],
        "decode": ["-p", 0, "-n", case.generate],
        "rows": ["-p", 0, "-n", case.generate, "--rows", case.size, "--depth", 64],
        "depth": ["-p", 0, "-n", case.generate, "--depth", case.size],
    }[case.kind]


def peer_command(case, model, peer):
    if case.kind == "rows":
        command = [peer.bin / "llama-batched-bench", "-m", model, "-t", case.threads, "-c", 16384, "-npp", 64,
                   "-ntg", case.generate, "-npl", case.size]
        return command + (["--output-format", "jsonl"] if peer.has_jsonl else [])
    command = [peer.bin / "llama-bench", "-m", model, "-t", case.threads, "-r", 1, "-o", "json", *peer.flags]
    if case.kind == "prompt":
        return command + ["-p", case.size, "-n", 0]
    if case.kind == "depth":
        return command + ["-p", 0, "-n", case.generate, "-d", case.size] if peer.has_depth else None
    return command + ["-p", 0, "-n", case.generate]


def headrace_rate(text):
    return json.loads(text)["results"][0]["tokens_per_second"]


def peer_rate(case, peer, text):
    if case.kind != "rows":
        return json.loads(text)[0]["avg_ts"]
    if peer.has_jsonl:
        return json.loads(next(line for line in text.splitlines() if line.startswith("{")))["speed_tg"]
    # | PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s | T s | S t/s |
    row = next(line for line in text.splitlines() if re.match(r"\|\s*\d", line))
    return float(row.split("|")[8])


def measure(case, model, headrace, peers, repeat):
    """Tokens a second of every run of every engine, and their command lines."""
    commands = {"headrace": headrace_command(case, model, headrace)}
    commands |= {name: command for name, peer in peers.items() if (command := peer_command(case, model, peer))}
    rates = {name: [] for name in commands}
    for _ in range(repeat):
        for name, command in commands.items():
            text = output_of(command)
            rates[name].append(headrace_rate(text) if name == "headrace" else peer_rate(case, peers[name], text))
    return {
        "rates": rates,
        "median": {name: statistics.median(values) for name, values in rates.items()},
        "commands": {name: page.shown(command) for name, command in commands.items()},
    }
