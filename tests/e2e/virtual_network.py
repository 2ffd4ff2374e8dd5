"""Machines that are network namespaces of this one, joined by a switch of limited rate, with a share of a core each."""
import contextlib
import ctypes
import itertools
import json
import os
import pathlib
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor

CGROUP = pathlib.Path("/sys/fs/cgroup")
QUOTA_PERIOD_US = 10000
CLONE_NEWNET = 0x40000000
counter = itertools.count()


def can_run():
    """Whether this process may make namespaces; else why not."""
    if os.geteuid() != 0:
        return "needs root"
    name = f"hr{os.getpid()}probe"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip()
    subprocess.run(["ip", "netns", "delete", name], check=False)
    return None


def ip(*words, namespace=None):
    command = ["ip", *(["-n", namespace] if namespace else []), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def new_prefix():
    """Of the names of a network's namespaces and devices, which are as short as those of devices have to be."""
    return f"hr{os.getpid()}x{next(counter)}"


def add_namespace(stack, name):
    """A network namespace until the stack is closed."""
    ip("netns", "add", name)
    stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=False)
    return name


class VirtualMachine:
    """`command(words)` is what runs there; `address` is how others reach it."""

    def __init__(self, namespace, address, core=None, group=None):
        self.namespace, self.address, self.core, self.group = namespace, address, core, group

    def command(self, words):
        pinned = ["taskset", "-c", str(self.core)] if self.core is not None else []
        return ["nsenter", f"--net=/run/netns/{self.namespace}", *pinned, *map(str, words)]

    def popen(self, words, **options):
        return subprocess.Popen(self.command(words), preexec_fn=self._enter_group, **options)

    def run(self, words, **options):
        return subprocess.run(self.command(words), preexec_fn=self._enter_group, **options)

    def received_bytes(self):
        """By its interface so far."""
        shown = ip("-s", "-j", "link", "show", "eth0", namespace=self.namespace)
        return json.loads(shown)[0]["stats64"]["rx"]["bytes"]

    def socket(self, kind=socket.SOCK_STREAM):
        """A socket as if made there."""
        with ThreadPoolExecutor(1) as pool:  # a thread that is there until it ends
            return pool.submit(self._socket, kind).result()

    def connect(self, host, port, timeout):
        """A connection as if from there."""
        connection = self.socket()
        connection.settimeout(timeout)
        connection.connect((host, port))
        return connection

    def _socket(self, kind):
        with open(f"/run/netns/{self.namespace}", encoding="ascii") as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"setns {self.namespace}")
        return socket.socket(type=kind)

    def _enter_group(self):
        if self.group is not None:
            (self.group / "cgroup.procs").write_text("0")


class VirtualNetwork:
    """`machines`: (core, share of it) of each, a share of None being all. Rates in Mbit/s, each way; None: no limit."""

    def __init__(self, machines, rate_mbit=None):
        self.stack = contextlib.ExitStack()
        self.prefix = new_prefix()
        try:
            self.machines = self._build(machines, rate_mbit)
        except BaseException:
            self.stack.close()
            raise

    def _build(self, machines, rate_mbit):
        switch = add_namespace(self.stack, self.prefix + "s")
        ip("link", "add", "bridge", "type", "bridge", namespace=switch)
        ip("link", "set", "bridge", "up", namespace=switch)
        return [self._machine(i, switch, core, share, rate_mbit) for i, (core, share) in enumerate(machines)]

    def _machine(self, index, switch, core, share, rate_mbit):
        namespace = add_namespace(self.stack, f"{self.prefix}m{index}")
        ip("link", "add", "eth0", "type", "veth", "peer", "name", f"port{index}", "netns", switch, namespace=namespace)
        ip("link", "set", f"port{index}", "master", "bridge", "up", namespace=switch)
        address = f"10.77.0.{index + 1}"
        ip("address", "add", f"{address}/24", "dev", "eth0", namespace=namespace)
        for device in ("lo", "eth0"):
            ip("link", "set", device, "up", namespace=namespace)
        if rate_mbit is not None:
            for where, device in ((namespace, "eth0"), (switch, f"port{index}")):
                limit_rate(where, device, rate_mbit)
        return VirtualMachine(namespace, address, core, self._group(f"m{index}", share) if share else None)

    def _group(self, name, share):
        quota = int(share * QUOTA_PERIOD_US)
        if (CGROUP / "cpu/cpu.cfs_quota_us").exists() or (CGROUP / "cpu/tasks").exists():
            group = CGROUP / "cpu" / (self.prefix + name)
            group.mkdir()
            (group / "cpu.cfs_period_us").write_text(str(QUOTA_PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            group = CGROUP / (self.prefix + name)
            group.mkdir()
            (group / "cpu.max").write_text(f"{quota} {QUOTA_PERIOD_US}")
        self.stack.callback(self._remove_group, group)
        return group

    @staticmethod
    def _remove_group(group):
        with contextlib.suppress(OSError):  # a program that has not quite ended
            group.rmdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()


def limit_rate(namespace, device, rate_mbit):
    """What leaves the device: a token bucket that holds 2 ms of it, and a queue of 50 ms before packets are dropped."""
    burst = max(int(rate_mbit * 1e6 / 8 * 0.002), 65536)
    subprocess.run(["tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{rate_mbit}mbit",
                    "burst", str(burst), "latency", "50ms"], check=True)
