"""Machines of a cluster under test: workers beside a head (server.Server with --workers)."""
import contextlib
import socket
import subprocess
import tempfile

from models import NUM_LAYERS
from program import PROGRAM
from running_program import SLACK, RunningProgram
from server import Server


# Not most of what is free: other tests run beside.
MEMORY_BYTES = str(1 << 30)


class ReservedPort:
    """A port that nobody else is given, on which programs can listen one after the other."""

    def __init__(self):
        self.holder = socket.socket()
        self.holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.holder.bind(("127.0.0.1", 0))
        self.number = self.holder.getsockname()[1]

    def close(self):
        self.holder.close()


class Worker:
    """`headrace worker FLAGS...` with a cache of its own, here or on a machine of virtual_network.py; start() and kill() as
    often as a test likes."""

    def __init__(self, *flags, program=PROGRAM, env=None, machine=None):
        self.stack = contextlib.ExitStack()
        self.port = self.stack.enter_context(contextlib.closing(ReservedPort())).number
        self.address = f"{machine.address if machine else '127.0.0.1'}:{self.port}"
        self.cache = self.stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        self.flags, self.program, self.env, self.machine = flags, program, env or {}, machine
        self.running = None
        self.start()

    def start(self):
        self.running = RunningProgram("worker", "--listen", self.address, "-t", "1", "--memory-bytes", MEMORY_BYTES,
                                      *self.flags, program=self.program, machine=self.machine,
                                      env={"HEADRACE_CACHE": self.cache, **self.env})
        self.running.wait_for_line(f"listening on port {self.port}")

    def kill(self):
        self.running.__exit__()

    def log(self):
        return self.running.log()

    def close(self):
        self.kill()
        self.stack.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class JoiningWorker(Worker):
    """`headrace worker --join HEAD --name NAME FLAGS...`: calls a head at a port of this machine."""

    def __init__(self, head_port, name, *flags, **options):
        self.name = name
        super().__init__("--join", f"127.0.0.1:{head_port}", "--name", name, *flags, **options)


@contextlib.contextmanager
def workers(number, *flags):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Worker(*flags)) for _ in range(number)]


def head_flags(machines, *flags):
    called = ["--workers", ",".join(machine.address for machine in machines)] if machines else []
    return [*called, "-t", "1", "--cluster-memory-bytes", MEMORY_BYTES, *flags]


def head(model, machines, *flags, **options):
    return Server(model, *head_flags(machines, *flags), **options)


def even_cut(layers, machines):
    """Layers of each machine."""
    return [(i + 1) * layers // machines - i * layers // machines for i in range(machines)]


def spread_head(model, machines, *flags, **options):
    """head(), with layers on every machine: the placement leaves machines out when its measurements say so."""
    cut = ",".join(map(str, even_cut(NUM_LAYERS[model], len(machines) + 1)))
    return head(model, machines, "--pipeline-layers", cut, *flags, **options)


def refused(model, machines, *flags):
    """The last line of a head that does not get its cluster."""
    result = subprocess.run([PROGRAM, "serve", model, "--port", "0", *head_flags(machines, *flags)], capture_output=True,
                            text=True, timeout=60 * SLACK)
    if result.returncode != 1:
        raise AssertionError(f"the head ended with {result.returncode}:\n{result.stderr}")
    return result.stderr.strip().splitlines()[-1]
