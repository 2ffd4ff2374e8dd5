"""Two machines that are network namespaces of this one, with a link between them that is slow to arrive and loses packets."""
import collections
import contextlib
import fcntl
import os
import random
import select
import struct
import threading
import time

from virtual_network import VirtualMachine, add_namespace, ip, new_prefix

# linux/if_tun.h: a device of IP packets without a head of their own.
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


def can_run():
    """Whether there are TUN devices; else why not."""
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        return f"/dev/net/tun: {error.strerror}"
    return None


class Direction:
    """Packets on their way from one descriptor to another, in the order in which they were sent."""

    def __init__(self, source, drain):
        self.source, self.drain = source, drain
        self.on_the_way = collections.deque()  # (when it arrives, packet)
        self.sent = self.lost = 0


class LossyLink:
    """`machines`: two. Each packet takes delay_s and up to jitter_s more to the other one, or is lost by a share of `loss`;
    which ones are is the same for the same seed and packets. Rates have no limit."""

    def __init__(self, delay_s, loss=0.0, jitter_s=0.0, seed=1):
        self.delay_s, self.loss, self.jitter_s = delay_s, loss, jitter_s
        self.random = random.Random(seed)
        self.stack = contextlib.ExitStack()
        try:
            prefix = new_prefix()
            devices = [self._device(f"{prefix}t{i}") for i in range(2)]
            self.machines = [self._machine(prefix, i) for i in range(2)]
            self.directions = [Direction(*devices), Direction(*reversed(devices))]
            self._start()
        except BaseException:
            self.stack.close()
            raise

    def _device(self, name):
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        self.stack.callback(os.close, device)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
        return device

    def _machine(self, prefix, index):
        namespace, device, address = add_namespace(self.stack, f"{prefix}l{index}"), f"{prefix}t{index}", f"10.78.0.{index + 1}"
        ip("link", "set", device, "netns", namespace)
        # No packets but those of the programs: IPv6 would ask who is there.
        ip("link", "set", device, "addrgenmode", "none", namespace=namespace)
        ip("address", "add", f"{address}/24", "dev", device, namespace=namespace)
        # None are lost but those that are chosen, however late the relay's thread runs.
        ip("link", "set", device, "txqueuelen", 10000, namespace=namespace)
        for name in ("lo", device):
            ip("link", "set", name, "up", namespace=namespace)
        return VirtualMachine(namespace, address)

    def _start(self):
        self.wake, end = os.pipe()
        thread = threading.Thread(target=self._relay, args=(end,))
        self.stack.callback(os.close, end)
        self.stack.callback(thread.join)
        self.stack.callback(os.close, self.wake)
        thread.start()

    def _relay(self, end):
        while True:
            due = [way.on_the_way[0][0] for way in self.directions if way.on_the_way]
            wait = max(min(due) - time.monotonic(), 0) if due else None
            readable, _, _ = select.select([end, *(way.source for way in self.directions)], [], [], wait)
            if end in readable:
                return
            for way in self.directions:
                if way.source in readable:
                    self._take(way)
                self._deliver(way)

    def _take(self, way):
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = os.read(way.source, 1 << 16)
                way.sent += 1
                if self.random.random() < self.loss:
                    way.lost += 1
                    continue
                arrives = time.monotonic() + self.delay_s + self.random.uniform(0, self.jitter_s)
                # A packet does not overtake another: on one path none does.
                if way.on_the_way:
                    arrives = max(arrives, way.on_the_way[-1][0])
                way.on_the_way.append((arrives, packet))

    @staticmethod
    def _deliver(way):
        now = time.monotonic()
        while way.on_the_way and way.on_the_way[0][0] <= now:
            with contextlib.suppress(OSError):  # the device is full: it is lost
                os.write(way.drain, way.on_the_way.popleft()[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()
