"""Workers that call their head (`headrace worker --join`) instead of being called."""
import contextlib
import tempfile
import unittest

from cluster_answers_test import answers
from cluster_join_test import Certificates, copy_of_another_build, secret_file
from cluster_loss_test import wait_for_status
from cluster_worker import JoiningWorker, ReservedPort, Worker, refused
from models import TINY_MODEL
from program import ProgramTest, run
from server import Server


class CallTest(ProgramTest):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.port = self.stack.enter_context(contextlib.closing(ReservedPort())).number

    @classmethod
    def setUpClass(cls):
        with Server(TINY_MODEL, "-t", "1") as alone:
            cls.expected = answers(alone)

    def worker(self, name, *flags, **options):
        return self.stack.enter_context(JoiningWorker(self.port, name, *flags, **options))

    def flags(self, number, *flags):
        return ["--join-listen", f"127.0.0.1:{self.port}", "--wait-for-workers", str(number), *flags]

    def head(self, number, *flags, workers=(), wait=True):
        cut = {1: "2,2", 2: "2,1,1", 3: "1,1,1,1"}[number + len(workers)]
        called = ["--workers", ",".join(worker.address for worker in workers)] if workers else []
        return self.stack.enter_context(Server(TINY_MODEL, "-t", "1", "--cluster-memory-bytes", str(1 << 30),
                                               "--pipeline-layers", cut, *self.flags(number, *flags), *called, wait=wait))

    def names(self, server):
        return [node["name"] for node in server.get("/v1/cluster").json()["nodes"]]

    def serves(self, server):
        self.assertEqual(answers(server), self.expected)
        self.assertEqual(server.end(), 0, server.log())

    def test_in_the_order_of_names_after_those_that_are_called(self):
        self.worker("b")
        server = self.head(2, workers=[self.stack.enter_context(Worker())], wait=False)
        server.wait_for_line(r"workers: 1 of 2 has joined \(b\), 1 is missing")
        self.worker("a")
        server.wait_for_line(r"workers: 2 of 2 have joined \(a, b\), 0 are missing")
        server.wait_until_ready()
        self.assertEqual(self.names(server)[2:], ["a", "b"])
        self.serves(server)

    def test_a_worker_that_comes_back_has_its_place_again(self):
        machines = [self.worker("a"), self.worker("b")]
        server = self.head(2)
        self.assertEqual(answers(server), self.expected)
        for lost in machines:
            lost.kill()
            wait_for_status(server, "/readyz", 503)
            server.wait_for_line(f"not joined again yet: worker {lost.name}: has not joined")
            lost.start()
            wait_for_status(server, "/readyz", 200)
            self.assertEqual(answers(server), self.expected)
        self.assertEqual(self.names(server), ["head", "a", "b"])
        self.assertEqual(server.metric("headrace_node_losses_total"), 2)
        self.assertEqual(server.end(), 0, server.log())

    def test_workers_stay_for_the_next_head(self):
        machines = [self.worker("a"), self.worker("b")]
        for _ in range(2):
            self.serves(self.head(2))
        for machine in machines:
            self.assertEqual(machine.running.end(), 0, machine.log())

    def test_the_head_need_not_reach_a_worker(self):
        """Neither the head nor anybody else can connect to what this one says is its address."""
        self.worker("a", "--advertise", "127.0.0.1:1")
        self.serves(self.head(1))

    def test_a_worker_that_its_neighbour_does_not_reach(self):
        self.worker("a")
        self.worker("b", "--advertise", "127.0.0.1:1")
        line = refused(TINY_MODEL, [], *self.flags(2))
        for part in ("worker a", "worker b", "127.0.0.1:1", "--advertise"):
            self.assertIn(part, line)

    def test_secured_by_secret_and_certificates(self):
        right = secret_file(self.folder, "right", "the secret that head and workers share")
        wrong = secret_file(self.folder, "wrong", "another secret, of the same cluster or none")
        flags = Certificates(self.folder, "ours").flags()
        machine = self.worker("a", "--secret-file", wrong, *flags)
        plain = self.worker("b", "--secret-file", right)
        line = refused(TINY_MODEL, [], *self.flags(1, "--join-timeout", "2", "--secret-file", right, *flags))
        self.assertIn("0 of 1 have joined, 1 is missing after 2 s", line)
        self.assertIn("--join-timeout", line)
        machine.running.wait_for_line("refused: give all machines the same shared secret")
        plain.running.wait_for_line(f"head 127.0.0.1:{self.port}: ")
        self.worker("c", "--secret-file", right, *flags)
        self.worker("d", "--secret-file", right, *flags)
        self.serves(self.head(2, "--secret-file", right, *flags))

    def test_who_is_not_taken_is_told_why(self):
        server = self.head(1, wait=False)
        other = self.worker("a", program=copy_of_another_build(self.folder))
        self.assertIn("--allow-other-builds", other.running.wait_for_line("does not take this worker: .*").string)
        server.wait_for_line(r"worker a .* is not taken: .*build 5a5a")
        self.worker("a")
        server.wait_until_ready()
        self.worker("a").running.wait_for_line("a worker of the name a is at work; --name")
        self.worker("c").running.wait_for_line("there are places for a only")
        self.serves(server)

    def test_wrong_flags_say_what_to_do(self):
        self.assertIn("--join-listen HOST:PORT", refused(TINY_MODEL, [], "--wait-for-workers", "2"))
        self.assertIn("--join-listen HOST:PORT", refused(TINY_MODEL, [], "--join-timeout", "3"))
        self.assertIn("HOST:PORT", refused(TINY_MODEL, [], "--join-listen", "nonsense"))
        for flags, part in ((("--name", "a"), "--join"), (("--join", "nonsense"), "HOST:PORT"),
                            (("--join", "a:1", "--name", "a b"), "--name 'a b'"),
                            (("--join", "a:1", "--advertise", "b"), "HOST:PORT")):
            self.assert_fails(run("worker", "-t", "1", *flags), part)


if __name__ == "__main__":
    unittest.main()
