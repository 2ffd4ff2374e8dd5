"""The link of lossy_link.py delays and loses what it says."""
import contextlib
import socket
import statistics
import time
import unittest

import lossy_link
import virtual_network
from lossy_link import LossyLink
from running_program import SLACK

WHY_NOT = virtual_network.can_run() or lossy_link.can_run()
PORT = 9000
SO_RCVBUFFORCE = 33


class Ends:
    """A socket for datagrams on each machine of a link."""

    def __init__(self, link):
        self.addresses = [(machine.address, PORT) for machine in link.machines]
        self.sockets = [machine.socket(socket.SOCK_DGRAM) for machine in link.machines]
        for end, address in zip(self.sockets, self.addresses):
            end.bind(address)
            end.settimeout(10 * SLACK)
            end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 23)  # else it loses some, too

    def send(self, source, data):
        self.sockets[source].sendto(data, self.addresses[1 - source])

    def receive(self, drain):
        return self.sockets[drain].recv(2048)

    def round_trip(self):
        begin = time.monotonic()
        for source in (0, 1):
            self.send(source, b"?")
            self.receive(1 - source)
        return time.monotonic() - begin

    def all_that_come(self, drain):
        """Until nothing has come for a second."""
        self.sockets[drain].settimeout(1)
        with contextlib.suppress(TimeoutError):
            while True:
                yield self.receive(drain)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for end in self.sockets:
            end.close()


@unittest.skipIf(WHY_NOT, f"left out: tests over a link that loses packets: {WHY_NOT}")
class LossyLinkTest(unittest.TestCase):
    def test_a_round_trip_takes_twice_the_delay(self):
        with LossyLink(delay_s=0.02) as link, Ends(link) as ends:
            times = [ends.round_trip() for _ in range(11)]
            print(f"round trips of 20 ms each way: median {statistics.median(times) * 1e3:.1f} ms")
            self.assertGreaterEqual(min(times), 0.04)
            self.assertLess(min(times), 0.04 + 0.01 * SLACK)
            self.assertEqual([(way.sent, way.lost) for way in link.directions], [(11, 0), (11, 0)])

    def test_jitter_delays_further_and_keeps_the_order(self):
        packets = [bytes([number]) for number in range(100)]
        with LossyLink(delay_s=0.01, jitter_s=0.05) as link, Ends(link) as ends:
            times = [ends.round_trip() for _ in range(11)]
            self.assertGreaterEqual(min(times), 0.02)
            self.assertGreater(max(times) - min(times), 0.01)
            for packet in packets:
                ends.send(0, packet)
            self.assertEqual([ends.receive(1) for _ in packets], packets)

    def test_a_share_is_lost_the_same_for_the_same_seed(self):
        def lost(seed):
            with LossyLink(delay_s=0.001, loss=0.1, seed=seed) as link, Ends(link) as ends:
                for number in range(1000):
                    ends.send(0, number.to_bytes(2, "big"))
                came = {int.from_bytes(packet, "big") for packet in ends.all_that_come(1)}
                self.assertEqual(link.directions[0].sent, 1000)
                self.assertEqual(link.directions[0].lost, 1000 - len(came))
                return set(range(1000)) - came
        first = lost(1)
        # 1000 packets, of which a tenth is lost: five standard deviations are 47.
        self.assertAlmostEqual(len(first), 100, delta=47)
        self.assertEqual(lost(1), first)
        self.assertNotEqual(lost(2), first)


if __name__ == "__main__":
    unittest.main()
