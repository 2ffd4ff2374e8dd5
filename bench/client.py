"""`headrace bench serve`, the client of all comparisons of servers."""
import json
import subprocess
import sys


def command(program, url, load, *flags):
    """`load` has clients, requests and output."""
    return [program, "bench", "serve", "--base-url", url, "--random-output-len", load.output, "--ignore-eos",
            "--max-concurrency", load.clients, "--num-prompts", load.requests, "--num-warmups", 0, "-o", "json", *flags]


def report(words, load, where, run=subprocess.run):
    """What it reports. `where`: for messages; `run` starts it as subprocess.run does."""
    done = run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {where}: the client failed\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout)
    if found["completed"] != load.requests:
        sys.exit(f"error: {where}: {found['completed']} of {load.requests} requests completed")
    return found
