"""One file that says what all machines of a cluster do (`--config`)."""
import contextlib
import pathlib
import socket
import tempfile
import unittest

from cluster_answers_test import answers
from cluster_join_test import secret_file
from cluster_worker import MEMORY_BYTES, ReservedPort
from models import TINY_MODEL
from program import ProgramTest, run
from running_program import RunningProgram
from server import Server


class ClusterFileTest(ProgramTest):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))

    def port(self):
        return self.stack.enter_context(contextlib.closing(ReservedPort())).number

    def file(self, text):
        path = self.folder / "cluster.yaml"
        path.write_text(text)
        return str(path)

    def worker(self, path, node, *flags):
        cache = self.folder / f"cache-{node}"
        return self.stack.enter_context(RunningProgram("worker", "--config", path, "--node", node, *flags,
                                                       env={"HEADRACE_CACHE": str(cache)}))

    def serve(self, path, *flags):
        return self.stack.enter_context(Server(f"--config={path}", *flags))

    def test_each_machine_finds_its_part(self):
        called, joined = self.port(), self.port()
        path = self.file(f"""
model: {TINY_MODEL}
secret_file: {secret_file(self.folder, "secret", "the secret that head and workers share")}
head:
  address: 127.0.0.1:{joined}
  threads: 1
  served_model_name: [one, two]
  cluster_memory_bytes: {MEMORY_BYTES}
  pipeline_layers: [1, 1, 1, 1]
workers:
  - name: c
    threads: 1
    memory_bytes: {MEMORY_BYTES}
  - name: b
    address: 127.0.0.1:{called}
    threads: 2
    memory_bytes: {MEMORY_BYTES}
    cpu_list: 0
  - {{name: a, threads: 1, memory_bytes: {MEMORY_BYTES}}}
nodes:  # what headrace plan is told
  - {{name: head, memory_gb: 4, memory_gb_per_s: 20, cores: 4, gops_per_core: 100}}
  - {{name: b, memory_gb: 4, memory_gb_per_s: 20, cores: 4, gops_per_core: 100}}
""")
        machines = [self.worker(path, node) for node in ("a", "b")] + [self.worker(path, "c", "-t", "3")]
        machines[1].wait_for_line(f"listening on port {called}")
        status = pathlib.Path(f"/proc/{machines[1].process.pid}/status").read_text()
        self.assertIn("Cpus_allowed_list:\t0\n", status)
        server = self.serve(path, "--served-model-name", "three")
        nodes = server.get("/v1/cluster").json()["nodes"]
        self.assertEqual([node["name"] for node in nodes], ["head", "c", f"127.0.0.1:{called}", "a"])
        self.assertEqual([node["threads"] for node in nodes], [1, 3, 2, 1])
        self.assertEqual([model["id"] for model in server.get("/v1/models").json()["data"]], ["three"])
        with Server(TINY_MODEL, "-t", "1") as alone:
            self.assertEqual(answers(server), answers(alone))
        self.assertEqual(server.end(), 0, server.log())
        planned = run("plan", TINY_MODEL, "--nodes", path)
        self.assertEqual(planned.returncode, 0, planned.stderr)
        self.assertIn("b", planned.stdout)

    def test_the_hosts_name_says_who_one_is(self):
        path = self.file(f"model: {TINY_MODEL}\nworkers:\n  - {{name: {socket.gethostname()}, address: '127.0.0.1:{self.port()}'}}\n")
        with RunningProgram("worker", "--config", path) as machine:
            machine.wait_for_line("listening on port")

    def test_what_is_wrong_and_where(self):
        worker = "workers:\n  - name: a\n    address: a:1\n"
        for text, *parts in (
                ("modle: x\n", ":1: unknown key 'modle'; did you mean model?"),
                (worker + "    thread: 1\n", ":4: workers, entry 1: unknown key 'thread'; did you mean threads?"),
                (worker + "    threads: many\n", ":4: workers, entry 1: threads: 'many'"),
                ("head:\n  prot: 1\n", ":2: head: unknown key 'prot'; did you mean port?"),
                ("head:\n  workers: a:1\n", ":2: head: unknown key 'workers'"),
                ("head:\nworkers:\n  - {name: a, address: 'a:1'}\n", ":1: head: nothing stands below it;"),
                ("head:\n  threads:\n", ":2: head: threads: nothing stands after it;"),
                ("head:\n  pipeline_layers: []\n", ":2: head: pipeline_layers: an empty list;"),
                ("head:\n  address: a:0\n", ":1: head: address: a:0: nobody can be called at port 0"),
                ("workers:\n", ":1: workers: nothing stands below it;"),
                ("workers: []\n", ":1: workers: expected a list"),
                ("workers:\n  - address: a:1\n", ":2: workers, entry 1: expected a name"),
                ("workers:\n  - name: head\n", ":2: workers, entry 1 (head): expected a name"),
                ("workers:\n  - {name: a, address: nonsense}\n", ":2: workers, entry 1 (a): address: nonsense: expected HOST:PORT"),
                ("workers:\n  - {name: a, address: 'a:0'}\n", ":2: workers, entry 1 (a): address: a:0: nobody can be called"),
                ("workers:\n  - {name: a, address: '0.0.0.0:8'}\n", ":2: workers, entry 1 (a): address: 0.0.0.0:8: this stands for all"),
                ("workers:\n  - name: a\n", ":2: workers, entry 1 (a): give its address"),
                (worker + "    join: b:1\n", ":2: workers, entry 1 (a): address, at which the head calls it, beside join"),
                (worker + "  - {name: a, address: 'b:1'}\n", ":4: workers, entry 2 (a): another entry has the same name"),
                (worker + "  - {name: b, address: 'a:1'}\n", ":4: workers, entry 2 (b): address: a:1 is that of entry 1"),
                ("workers: a\n", ":1: workers: expected a list"),
                ("model: a\n---\nmodel: b\n", "more than one document"),
                ("model: [\n", "line ", "see this line")):
            path = self.file(text)
            for command in (["serve"], ["worker", "--node", "a"]):
                self.assert_fails(run(*command, "--config", path), path, *parts)
        path = self.file(worker)
        self.assert_fails(run("worker", "--config", path, "--node", "b"), path, "none is named b", "--node", ": a")
        self.assert_fails(run("serve", "--config", path), "MODEL is missing")
        self.assert_fails(run("serve"), "MODEL is missing", "--config")
        self.assert_fails(run("worker", "--config", "/nowhere.yaml"), "/nowhere.yaml")
        for cpus in ("", "x", "1-", "3-1", "0,", "99999", "1000"):
            self.assert_fails(run("worker", f"--cpu-list={cpus}", "--listen", "127.0.0.1:0") if cpus else
                              run("serve", TINY_MODEL, "--cpu-list=,"), "--cpu-list")


if __name__ == "__main__":
    unittest.main()
