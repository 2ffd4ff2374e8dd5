"""How machines come together, and who is refused. Each test is named by the scenario's id where there is one."""
import contextlib
import itertools
import os
import pathlib
import random
import socket
import struct
import subprocess
import tempfile
import time
import types
import unittest

from cluster_answers_test import answers
from cluster_worker import Worker, head, refused, spread_head, workers
from models import CHAT_MODEL, IS_SMOLLM2, OTHER_MODEL, TINY_MODEL
from program import PROGRAM, ProgramTest, run
from relay import Relay
from running_program import SANITIZED, SLACK
from server import Server


def copy_of_program(folder, name, program):
    """A program of these bytes."""
    path = pathlib.Path(folder) / name
    path.write_bytes(program)
    path.chmod(0o755)
    return str(path)


def copy_of_another_build(folder):
    """A copy of the program that says it is another build: its build-id note has other bytes."""
    program = bytearray(pathlib.Path(PROGRAM).read_bytes())
    note = program.index(struct.pack("<III", 4, 20, 3) + b"GNU\0") + 16
    program[note:note + 20] = b"\x5a" * 20
    return copy_of_program(folder, "headrace", program)


def copy_with_another_recipe(folder):
    """A copy of the program that says that it computes attention by another version of its recipe."""
    program = pathlib.Path(PROGRAM).read_bytes().replace(b"online512 v2", b"online512 v9")
    return copy_of_program(folder, "headrace-recipe", program)


def secret_file(folder, name, text):
    path = pathlib.Path(folder) / name
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


class Certificates:
    """An authority, and a certificate that it signed, made by openssl."""

    def __init__(self, folder, name):
        base = os.path.join(folder, name)
        self.authority, self.certificate, self.key = base + ".ca", base + ".pem", base + ".key"
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]

        def make(*arguments):
            subprocess.run(["openssl", "req", "-x509", *key, *arguments], check=True, capture_output=True)

        make("-subj", "/CN=authority", "-out", self.authority, "-keyout", base + ".cakey")
        make("-subj", "/CN=machine", "-out", self.certificate, "-keyout", self.key, "-CA", self.authority, "-CAkey",
             base + ".cakey")

    def flags(self):
        return ["--cluster-certfile", self.certificate, "--cluster-keyfile", self.key, "--cluster-cafile", self.authority]


class JoinTest(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def serves(self, model, machines, *flags):
        with head(model, machines, *flags) as server:
            found = answers(server)
            self.assertEqual(server.end(), 0)
            return found

    def alone(self, model):
        with Server(model, "-t", "1") as server:
            return answers(server)

    def test_A6_what_cannot_fit_is_refused_with_the_figures(self):
        with Worker("--memory-bytes", "200000") as small:
            line = refused(CHAT_MODEL, [small], "--cluster-memory-bytes", "300000")
            for part in ("does not fit", "0.3", "0.2", small.address):
                self.assertIn(part, line)

    def test_A6_layers_follow_the_memory(self):
        size = 160 << 20 if IS_SMOLLM2 else 1 << 20
        with Worker("--memory-bytes", str(size)) as small, Worker() as large:
            with head(CHAT_MODEL, [small, large], "--placement", "kv") as server:
                nodes = {node["name"]: node for node in server.get("/v1/cluster").json()["nodes"]}
                for node in nodes.values():
                    memory = node["memory"]
                    self.assertLessEqual(memory["weight_bytes"] + memory["kv_cache_bytes"], memory["limit_bytes"], node)
                layers = {name: node["units"]["num_layers"] for name, node in nodes.items()}
                # One that would make nothing faster is left out.
                self.assertLess(layers.get(small.address, 0), layers[large.address])
                self.assertEqual(server.end(), 0)

    @unittest.skipUnless(IS_SMOLLM2, "four layers cannot be in proportion")
    def test_A6_layers_are_in_proportion_to_the_memory(self):
        limits = [100 << 20, 200 << 20, 400 << 20]
        with contextlib.ExitStack() as stack:
            machines = [stack.enter_context(Worker("--memory-bytes", str(limit))) for limit in limits]
            # Of the head's there is as good as none beside the embedding.
            with head(CHAT_MODEL, machines, "--placement", "kv", "--cluster-memory-bytes", str(60 << 20)) as server:
                nodes = server.get("/v1/cluster").json()["nodes"][1:]
                layers = [node["units"]["num_layers"] for node in nodes]
                for found, limit in zip(layers, limits):
                    self.assertAlmostEqual(found, sum(layers) * limit / sum(limits), delta=2)
                for node, limit in zip(nodes, limits):
                    self.assertEqual(node["memory"]["limit_bytes"], limit)
                    self.assertLessEqual(node["memory"]["weight_bytes"] + node["memory"]["kv_cache_bytes"], limit)
                self.assertEqual(server.end(), 0)

    def test_A13_parts_of_the_model_are_sent_once(self):
        layers = ("--pipeline-layers", "15,15" if IS_SMOLLM2 else "2,2", "--output-stage", "last")
        with Worker() as machine, Relay(int(machine.address.rpartition(":")[2])) as relay:
            first = self.serves(CHAT_MODEL, [relay], *layers)
            self.assertEqual(first, self.alone(CHAT_MODEL))
            part = 30e6 if IS_SMOLLM2 else 3e5
            sent_first = relay.sent
            self.assertGreater(sent_first, part)
            machine.kill()
            machine.start()
            relay.sent = 0
            with head(CHAT_MODEL, [relay], *layers) as server:
                for phase in ("connect", "hash model", "measure", "send weights", "pack", "ready"):
                    server.wait_for_line(f"worker {relay.address}: {phase}: done in [0-9.]+ s")
                for phase in ("hash model", "measure", "pack"):
                    server.wait_for_line(f"head: {phase}: done in [0-9.]+ s")
                self.assertLess(relay.sent, min(1e6, sent_first - part))
                self.assertEqual(answers(server), first)
                self.assertEqual(server.end(), 0)

    def test_A13_what_was_kept_and_is_damaged_is_sent_again(self):
        layers = ("--pipeline-layers", "2,2", "--output-stage", "last")
        expected = self.alone(TINY_MODEL)
        noise = random.Random(1)
        with Worker() as machine:
            def damage(pattern, change):
                machine.kill()
                paths = [path for path in pathlib.Path(machine.cache, "parts").rglob(pattern) if path.is_file()]
                self.assertTrue(paths, pattern)
                for path in paths:
                    path.write_bytes(change(path.read_bytes()))
                machine.start()
                self.assertEqual(self.serves(TINY_MODEL, [machine], *layers), expected)

            self.assertEqual(self.serves(TINY_MODEL, [machine], *layers), expected)
            damage("*.gguf", lambda old: old[:len(old) // 2])
            damage("*.gguf", lambda old: bytes(byte ^ 0x11 for byte in old))
            damage("journal", lambda old: old[:len(old) // 2 + 3])
            damage("journal", lambda old: noise.randbytes(len(old)))
            damage("manifest.json", lambda old: old[:len(old) // 2])
            damage("manifest.json", lambda old: old.replace(b"0", b"9"))
            damage("manifest.json", lambda old: noise.randbytes(2000))

    def test_A14_a_worker_whose_copy_is_of_another_model(self):
        with Worker("--model", OTHER_MODEL) as machine:
            self.assertEqual(self.serves(TINY_MODEL, [machine], "--pipeline-layers", "2,2"), self.alone(TINY_MODEL))
            machine.running.wait_for_line(
                f"local copy {OTHER_MODEL} is not used: it is model [0-9a-f]{{32}}, the head has [0-9a-f]{{32}}")
        with Worker("--model", "/nowhere.gguf") as machine:
            self.assertEqual(self.serves(TINY_MODEL, [machine], "--pipeline-layers", "2,2"), self.alone(TINY_MODEL))
            machine.running.wait_for_line("/nowhere.gguf")

    def test_A14_a_worker_of_another_build(self):
        other = copy_of_another_build(self.folder)
        with Worker(program=other) as machine:
            line = refused(TINY_MODEL, [machine])
            own = run("--version").stdout.split()
            for part in (machine.address, "5a" * 20, "--allow-other-builds"):
                self.assertIn(part, line, own)
            self.assertEqual(self.serves(TINY_MODEL, [machine], "--allow-other-builds"), self.alone(TINY_MODEL))

    def test_A14_a_worker_with_another_recipe_of_numbers(self):
        with Worker(program=copy_with_another_recipe(self.folder)) as machine:
            line = refused(TINY_MODEL, [machine])
            self.assertIn(f"worker {machine.address}: computes portable numbers by online512 v9, this is online512 v2;", line)
        with Worker("--isa", "ref") as machine:
            line = refused(TINY_MODEL, [machine], "--isa", "avx2", "--numerics", "fastest")
            for part in (f"worker {machine.address}: has compute class ref, this is avx2;", "--isa", "--numerics portable"):
                self.assertIn(part, line)
            self.assertEqual(self.serves(TINY_MODEL, [machine], "--isa", "avx2", "--pipeline-layers", "2,2"),
                             self.alone(TINY_MODEL))

    def test_A15_only_who_has_the_secret(self):
        right = secret_file(self.folder, "right", "the secret that head and workers share")
        wrong = secret_file(self.folder, "wrong", "another secret, of the same cluster or none")
        with Worker("--secret-file", right) as machine, Worker() as open_machine:
            for flags in ((), ("--secret-file", wrong)):
                self.assertIn(f"worker {machine.address}: ", refused(TINY_MODEL, [machine], *flags))
            self.assertIn(f"worker {open_machine.address}: ", refused(TINY_MODEL, [open_machine], "--secret-file", right))
            with spread_head(TINY_MODEL, [machine], "--secret-file", right) as server:
                found = answers(server)
                self.assertEqual(found, self.alone(TINY_MODEL))
                for flags in ((), ("--secret-file", wrong)):
                    self.assertIn("refused", refused(TINY_MODEL, [machine], *flags))
                self.assertEqual(answers(server), found)
                self.assertEqual(server.get("/readyz").status, 200)
                self.assertEqual(server.end(), 0)
            for text in ("the secret", "another secret"):
                self.assertNotIn(text, machine.log())

    def test_A15_random_bytes_do_nothing(self):
        noise = random.Random(7)
        with Worker() as machine, spread_head(TINY_MODEL, [machine]) as server:
            found = answers(server)
            port = int(machine.address.rpartition(":")[2])
            # The first bytes of a frame, so that some of the noise is looked at further.
            frame = b""
            with socket.create_server(("127.0.0.1", 0)) as listener:
                probe = subprocess.Popen([PROGRAM, "serve", TINY_MODEL, "--port", "0", "--workers",
                                          f"127.0.0.1:{listener.getsockname()[1]}"], stderr=subprocess.DEVNULL)
                connection = listener.accept()[0]
                frame = connection.recv(4096)
                connection.close()
                probe.wait()
            end = time.monotonic() + (600 if os.environ.get("HEADRACE_LONG") and SANITIZED else 0)
            for round_number in itertools.count():
                if round_number >= 60 and time.monotonic() > end:
                    break
                with socket.create_connection(("127.0.0.1", port)) as client, contextlib.suppress(OSError):
                    if round_number % 3 == 0:
                        client.sendall(noise.randbytes(noise.randrange(1, 5000)))
                    else:
                        changed = bytearray(frame)
                        for _ in range(noise.randrange(1, 4)):
                            changed[noise.randrange(len(changed))] = noise.randrange(256)
                        client.sendall(changed[:noise.randrange(1, len(changed) + 1)])
                    if round_number % 2 == 0:
                        client.shutdown(socket.SHUT_WR)
                        client.settimeout(10)
                        client.recv(4096)
            self.assertEqual(answers(server), found)
            self.assertEqual(server.metric("headrace_node_losses_total"), 0)
            self.assertEqual(server.end(), 0)

    def test_links_secured_by_tls(self):
        ours, theirs = Certificates(self.folder, "ours"), Certificates(self.folder, "theirs")
        with workers(2, *ours.flags()) as machines:
            for flags in ((), theirs.flags()):
                self.assertIn(f"worker {machines[0].address}: ", refused(TINY_MODEL, machines[:1], *flags))
            self.assertEqual(self.serves(TINY_MODEL, machines, "--pipeline-layers", "2,1,1", *ours.flags()),
                             self.alone(TINY_MODEL))

    def test_a_machine_that_does_not_answer(self):
        """Phase, machine, limit and what to do."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            begin = time.monotonic()
            line = refused(TINY_MODEL, [types.SimpleNamespace(address=address)])
            self.assertLess(time.monotonic() - begin, 5 + 5 * SLACK)
            for part in (f"worker {address}: connect: ", "(limit 5 s)", "see that 'headrace worker' runs there"):
                self.assertIn(part, line)
        line = refused(TINY_MODEL, [types.SimpleNamespace(address=address)])
        self.assertIn(f"worker {address}: connect: ", line)
        self.assertIn("see that 'headrace worker' runs there", line)

    def test_a_second_head_is_refused(self):
        with Worker() as machine, spread_head(TINY_MODEL, [machine]) as server:
            found = answers(server)
            line = refused(OTHER_MODEL, [machine])
            self.assertIn(machine.address, line)
            self.assertIn("serves another head", line)
            self.assertEqual(answers(server), found)
            self.assertEqual(server.metric("headrace_node_losses_total"), 0)
            self.assertEqual(server.end(), 0)

    def test_wrong_starts_say_what_to_do(self):
        with Worker() as machine:
            twice = refused(TINY_MODEL, [machine, machine])
            self.assertIn(f"--workers: {machine.address} is named twice", twice)
            again = types.SimpleNamespace(address=machine.address.replace("127.0.0.1", "localhost"))
            begin = time.monotonic()
            twice = refused(TINY_MODEL, [machine, again])
            self.assertLess(time.monotonic() - begin, 5 * SLACK)
            for part in (machine.address, again.address, "are one and the same"):
                self.assertIn(part, twice)
            self.assertIn("6 layers; the model has 4", refused(TINY_MODEL, [machine], "--pipeline-layers", "4,2"))
            self.assertIn("--pipeline-layers", refused(TINY_MODEL, [machine], "--pipeline-layers", "4"))
            machine.kill()
            self.assertIn(f"worker {machine.address}: ", refused(TINY_MODEL, [machine]))
        for flags, part in ((("--listen", "nonsense"), "nonsense"), (("--secret-file", "/nowhere"), "/nowhere"),
                            (("--cluster-certfile", "/nowhere.pem"), "three files"), (("--listen", ""), "HOST:PORT")):
            self.assert_fails(run("worker", "-t", "1", *flags), part)


if __name__ == "__main__":
    unittest.main()
