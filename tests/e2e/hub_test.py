"""Models from a hub, hf:ORG/NAME: against a hub of the test's own (hub_server.py)."""
import json
import os
import pathlib
import pty
import struct
import subprocess
import tempfile
import unittest

from hub_server import Hub, Repo, git_blob, sha256
from program import PROGRAM, ProgramTest, data, run

GGUF = pathlib.Path(data("gguf/llama-Q8_0.gguf")).read_bytes()
OTHER_GGUF = pathlib.Path(data("gguf/qwen2-Q8_0.gguf")).read_bytes()
COMMIT = "1" * 40
TOKEN = "hf_secret"


def folder_files(name):
    """The files of a model folder of the tests, as they would lie in a repository."""
    folder = pathlib.Path(data("models/" + name))
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith("golden")}


def shards_of(safetensors):
    """The file of all weights cut into two, with their index: name -> bytes."""
    size = struct.unpack("<Q", safetensors[:8])[0]
    tensors = json.loads(safetensors[8:8 + size])
    tensors.pop("__metadata__", None)
    names = sorted(tensors)
    files, weight_map = {}, {}
    for number, part in enumerate((names[:3], names[3:]), start=1):
        file = f"model-0000{number}-of-00002.safetensors"
        header, body = {}, b""
        for name in part:
            begin, end = (8 + size + offset for offset in tensors[name]["data_offsets"])
            header[name] = {**tensors[name], "data_offsets": [len(body), len(body) + end - begin]}
            body += safetensors[begin:end]
            weight_map[name] = file
        text = json.dumps(header).encode()
        files[file] = struct.pack("<Q", len(text)) + text + body
    files["model.safetensors.index.json"] = json.dumps({"weight_map": weight_map}).encode()
    return files


class HubTest(ProgramTest):
    def setUp(self):
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = pathlib.Path(home.name)
        self.cache = self.home / "hub"
        self.hub.repos["org/tiny"] = Repo({"README.md": b"hello", "tiny-Q8_0.gguf": GGUF})
        self.tiny = self.cache / "models--org--tiny"

    def environment(self, **more):
        return {"HF_HOME": str(self.home), "HF_ENDPOINT": self.hub.url, "HF_TOKEN": "", "HF_HUB_CACHE": "",
                "HF_HUB_OFFLINE": "", "HF_HUB_DOWNLOAD_TIMEOUT": "20", "no_proxy": "127.0.0.1", **more}

    def inspect(self, model, **env):
        return run("inspect", model, "--json", "--isa", "ref", env=self.environment(**env))

    def assert_opens(self, model, architecture="llama", **env):
        result = self.inspect(model, **env)
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["architecture"], architecture)
        return result

    def assert_refused(self, model, *parts, **env):
        """One line of our own beside what was said on the way."""
        result = self.inspect(model, **env)
        self.assertEqual(result.returncode, 1, result.stderr)
        last = result.stderr.splitlines()[-1]
        self.assertTrue(last.startswith("headrace: "), last)
        for part in parts:
            self.assertIn(part, last)
        return result

    def leftovers(self):
        """What must not be there after a fetch, whole or failed for good."""
        return [str(path) for path in self.cache.rglob("*") if path.name.endswith((".incomplete", ".new"))]


class LayoutTest(HubTest):
    def test_the_only_gguf(self):
        self.assert_opens("hf:org/tiny")
        self.assertEqual((self.tiny / "refs/main").read_text(), COMMIT)
        link = self.tiny / "snapshots" / COMMIT / "tiny-Q8_0.gguf"
        self.assertEqual(os.readlink(link), "../../blobs/" + sha256(GGUF))
        self.assertEqual(link.read_bytes(), GGUF)
        self.assertEqual([p.name for p in link.parent.iterdir()], ["tiny-Q8_0.gguf"])
        self.assertEqual(self.leftovers(), [])
        self.assertFalse(any("Authorization" in r[3] for r in self.hub.requests))

    def test_a_second_run_only_asks_for_the_commit(self):
        self.assert_opens("hf:org/tiny")
        self.hub.requests.clear()
        self.assert_opens("hf:org/tiny")
        self.assertEqual(self.hub.seen(), ["/api/models/org/tiny/revision/main"])

    def test_a_new_commit_fetches_what_changed(self):
        self.assert_opens("hf:org/tiny")
        self.hub.repos["org/tiny"] = Repo({"tiny-Q8_0.gguf": OTHER_GGUF}, commit="2" * 40)
        self.assert_opens("hf:org/tiny", "qwen2")
        self.hub.requests.clear()
        self.hub.repos["org/tiny"] = Repo({"renamed.gguf": GGUF}, commit="3" * 40)
        self.assert_opens("hf:org/tiny")
        self.assertEqual(self.hub.seen("cdn"), [])  # the blob is here by its digest
        self.assertEqual((self.tiny / "refs/main").read_text(), "3" * 40)

    def test_safetensors_with_an_index(self):
        files = folder_files("llama")
        files |= shards_of(files.pop("model.safetensors"))
        more = {"README.md": b"x", "pytorch_model.bin": b"x", "onnx/model.safetensors": b"x", "vision.safetensors": b"x",
                "tokenizer.model": b"y", "additional_chat_templates/tool_use.jinja": b"{{ messages }}"}
        self.hub.repos["org/sharded"] = Repo({**files, **more})
        self.assert_opens("hf:org/sharded")
        snapshot = self.cache / "models--org--sharded/snapshots" / COMMIT
        found = {str(p.relative_to(snapshot)) for p in snapshot.rglob("*") if p.is_file()}
        self.assertEqual(found, {*files, "tokenizer.model", "additional_chat_templates/tool_use.jinja"})
        config = snapshot / "config.json"
        self.assertEqual(os.readlink(config), "../../blobs/" + git_blob(files["config.json"]))
        deep = snapshot / "additional_chat_templates/tool_use.jinja"
        self.assertEqual(os.readlink(deep), "../../../blobs/" + git_blob(b"{{ messages }}"))
        self.assert_opens("hf:org/sharded", HF_HUB_OFFLINE="1")
        next(snapshot.glob("model-00002*")).unlink()
        self.assert_refused("hf:org/sharded", "HF_HUB_OFFLINE is set and it is not whole in", HF_HUB_OFFLINE="1")

    def test_finds_what_other_tools_have_fetched(self):
        blobs = self.tiny / "blobs"
        snapshot = self.tiny / "snapshots" / COMMIT
        for folder in (blobs, snapshot, self.tiny / "refs"):
            folder.mkdir(parents=True)
        (self.tiny / "refs/main").write_text(COMMIT)
        (snapshot / "tiny-Q8_0.gguf").write_bytes(GGUF)  # a file, as where links are not possible
        self.assert_opens("hf:org/tiny", HF_HUB_OFFLINE="1")
        self.assert_opens("hf:org/tiny")
        self.assertEqual(self.hub.seen("cdn"), [])

    def test_cache_folders(self):
        elsewhere = self.home / "elsewhere"
        self.assert_opens("hf:org/tiny", HF_HUB_CACHE=str(elsewhere))
        self.assertTrue((elsewhere / "models--org--tiny/refs/main").is_file())
        self.assertFalse(self.cache.exists())
        (self.home / "file").write_text("x")
        self.assert_refused("hf:org/tiny", "cannot be made", "set HF_HUB_CACHE", HF_HUB_CACHE=str(self.home / "file"))


class ChoiceTest(HubTest):
    def setUp(self):
        super().setUp()
        self.hub.repos["org/many"] = Repo({"m-Q8_0.gguf": GGUF, "m-Q4_K_M.gguf": OTHER_GGUF, "mmproj-m.gguf": b"x",
                                           "sub/m-Q8_0-00001-of-00002.gguf": GGUF, "sub/m-Q8_0-00002-of-00002.gguf": b"x"})

    def test_q4_k_m_by_default(self):
        result = self.assert_opens("hf:org/many", "qwen2")
        self.assertEqual(result.stderr, "hf:org/many: holds several models, taking m-Q4_K_M.gguf\n")

    def test_a_file(self):
        self.assertEqual(self.assert_opens("hf:org/many:m-Q8_0.gguf").stderr, "")
        self.assertEqual(len(self.hub.seen("cdn")), 1)

    def test_a_quantization(self):
        self.assert_opens("hf:org/many:q4_k_m", "qwen2")
        self.assert_refused("hf:org/many:Q8_0", "several files; give one of m-Q8_0.gguf, sub/m-Q8_0-00001-of-00002.gguf")

    def test_all_parts_of_a_split_set(self):
        self.assert_opens("hf:org/many:sub/m-Q8_0-00001-of-00002.gguf")
        self.assertEqual(len(list((self.cache / "models--org--many/blobs").iterdir())), 2)

    def test_no_choice(self):
        self.hub.repos["org/two"] = Repo({"a.gguf": GGUF, "b.gguf": GGUF})
        self.assert_refused("hf:org/two", "append ':' and the name or quantization of one: a.gguf, b.gguf")

    def test_revisions(self):
        self.hub.repos["org/tiny"].revisions |= {"v1.0", "refs/pr/1"}
        self.assert_opens("hf:org/tiny@v1.0")
        self.assert_opens("hf:org/tiny@refs/pr/1:tiny-Q8_0.gguf")
        self.assertEqual((self.tiny / "refs/refs/pr/1").read_text(), COMMIT)
        self.hub.requests.clear()
        self.assert_opens(f"hf:org/tiny@{COMMIT}:tiny-Q8_0.gguf")
        self.assertEqual(self.hub.seen(), [])  # never changes: nobody is asked
        self.assert_refused("hf:org/tiny@v2", "hf:org/tiny@v2: has no branch, tag or commit v2")

    def test_names_near_a_wrong_one(self):
        self.assert_refused("hf:org/tiny:tiny-Q8_O.gguf", "did you mean tiny-Q8_0.gguf?")
        self.assert_refused("hf:org/tinny", "no such model on", "HF_TOKEN")
        self.assert_refused("hf:gro/tiny", "there are org/tiny")

    def test_paths_of_a_listing_are_not_trusted(self):
        evil = {"../../../evil.gguf": GGUF, "/evil.gguf": GGUF, "a/../../evil.gguf": GGUF, "a\\..\\evil.gguf": GGUF}
        self.hub.repos["org/evil"] = Repo(evil)
        self.assert_refused("hf:org/evil", "holds no .safetensors and no .gguf")
        index = b'{"weight_map":{"t":"../evil.safetensors"}}'
        self.hub.repos["org/evil"] = Repo({"config.json": b"{}", "model.safetensors.index.json": index,
                                           "../evil.safetensors": b"x", "a.safetensors": b"x"})
        self.assert_refused("hf:org/evil", "is not the name of a .safetensors file in this folder")
        self.assertEqual([str(p) for p in self.home.rglob("*evil*") if "org" not in p.name], [])

    def test_an_etag_is_no_path(self):
        self.hub.repos["org/tiny"].etags["tiny-Q8_0.gguf"] = "../../evil"
        self.assert_refused("hf:org/tiny", "does not say the digest and size")


class TransferTest(HubTest):
    def test_goes_on_after_a_break(self):
        self.hub.faults = [("cut", 100_000), ("cut", 50_000)]
        self.assert_opens("hf:org/tiny")
        self.assertEqual(self.hub.ranges(), [None, "bytes=100000-", "bytes=150000-"])

    def test_goes_on_in_the_next_run(self):
        self.hub.faults = [("cut", 100_000)] + 5 * [("cut", 0)]
        self.assert_refused("hf:org/tiny", "broke at tiny-Q8_0.gguf", "run it again to go on from there")
        part = self.tiny / "blobs" / (sha256(GGUF) + ".incomplete")
        self.assertEqual(part.stat().st_size, 100_000)
        self.hub.requests.clear()
        self.hub.faults = []
        self.assert_opens("hf:org/tiny")
        self.assertEqual(self.hub.ranges(), ["bytes=100000-"])
        self.assertEqual(self.leftovers(), [])

    def test_a_server_without_ranges(self):
        self.hub.takes_ranges = False
        self.hub.faults = [("cut", 100_000)]
        self.assert_opens("hf:org/tiny")

    def test_a_part_that_is_none_is_fetched_anew(self):
        blobs = self.tiny / "blobs"
        blobs.mkdir(parents=True)
        for junk in (b"junk", b"x" * len(GGUF), b"x" * (len(GGUF) + 1)):
            (blobs / (sha256(GGUF) + ".incomplete")).write_bytes(junk)
            self.assert_opens("hf:org/tiny")
            (blobs / sha256(GGUF)).unlink()

    def test_a_stalled_transfer(self):
        self.hub.faults = [("stall", 100_000)]
        self.assert_opens("hf:org/tiny", HF_HUB_DOWNLOAD_TIMEOUT="1")
        self.assertEqual(self.hub.ranges(), [None, "bytes=100000-"])

    def test_trouble_that_passes(self):
        self.hub.api_faults = [("status", 503)]
        self.hub.faults = [("status", 429, {"Retry-After": "1"}), ("status", 500, {})]
        self.assert_opens("hf:org/tiny")

    def test_trouble_that_stays(self):
        self.hub.faults = [("status", 418, {})]
        self.assert_refused("hf:org/tiny", f"{self.hub.cdn} answers 418 for tiny-Q8_0.gguf")
        self.hub.api_faults = [("status", 429, {"Retry-After": "9999"})]
        self.assert_refused("hf:org/tiny", "answers 429")

    def test_a_wrong_digest(self):
        self.hub.spoiled = {sha256(GGUF)}
        self.assert_refused("hf:org/tiny", "the digest of tiny-Q8_0.gguf is", "but the hub says " + sha256(GGUF))
        self.assertEqual(list((self.tiny / "blobs").iterdir()), [])
        self.assertFalse((self.tiny / "refs/main").exists())

    def test_a_file_longer_than_said(self):
        self.hub.repos["org/tiny"].sizes["tiny-Q8_0.gguf"] = 1000
        self.assert_refused("hf:org/tiny", "tiny-Q8_0.gguf is longer than the 1000 bytes that the hub says")

    def test_a_disk_too_small(self):
        self.hub.repos["org/tiny"].sizes["tiny-Q8_0.gguf"] = 10**18
        self.assert_refused("hf:org/tiny", "needs 1000000000.0 GB on the disk of", "HF_HUB_CACHE")

    def test_two_processes_fetch_it_once(self):
        self.hub.piece_pause = 0.1
        command = [PROGRAM, "inspect", "hf:org/tiny", "--json", "--isa", "ref"]
        env = {**os.environ, **self.environment()}
        both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
                for _ in range(2)]
        errors = ""
        for process in both:
            out, error = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, error)
            self.assertEqual(json.loads(out)["architecture"], "llama")
            errors += error
        self.assertEqual(len(self.hub.seen("cdn")), 1)
        self.assertIn("waiting for another process that fetches tiny-Q8_0.gguf", errors)

    def test_a_progress_line(self):
        self.hub.piece_pause = 0.1
        ours, theirs = pty.openpty()
        process = subprocess.Popen([PROGRAM, "inspect", "hf:org/tiny"], stdout=subprocess.DEVNULL, stderr=theirs,
                                   env={**os.environ, **self.environment()})
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:  # how the end of a terminal shows
            pass
        os.close(ours)
        self.assertEqual(process.wait(), 0)
        self.assertIn(b"Fetching tiny-Q8_0.gguf [", shown)
        self.assertIn(b"MB", shown)


class AccessTest(HubTest):
    def test_the_token_stays_with_the_hub(self):
        self.hub.repos["org/tiny"].gated = True
        self.hub.members = {TOKEN}
        for env, setup in (({"HF_TOKEN": TOKEN}, None), ({}, self.home / "token")):
            if setup:
                setup.write_text(TOKEN + "\n")
            result = self.assert_opens("hf:org/tiny", HEADRACE_LOG="debug", **env)
            self.assertNotIn(TOKEN, result.stderr)
            sent = {server: {r[3].get("Authorization") for r in self.hub.requests if r[0] == server}
                    for server in ("hub", "cdn")}
            self.assertEqual(sent, {"hub": {"Bearer " + TOKEN}, "cdn": {None}})
            self.hub.requests.clear()
            (self.tiny / "snapshots" / COMMIT / "tiny-Q8_0.gguf").unlink()
            (self.tiny / "blobs" / sha256(GGUF)).unlink()

    def test_gated(self):
        self.hub.repos["org/tiny"].gated = True
        page = f"do that at {self.hub.url}/org/tiny"
        self.assert_refused("hf:org/tiny", page, "set HF_TOKEN to a token of")
        result = self.assert_refused("hf:org/tiny", page, "has no access yet", HF_TOKEN=TOKEN)
        self.assertNotIn(TOKEN, result.stderr)

    def test_a_private_model(self):
        self.assert_refused("hf:org/secret", "or set HF_TOKEN to a token that may read it")
        self.assert_refused("hf:org/secret", "or that HF_TOKEN may read it", HF_TOKEN=TOKEN)

    def test_settings(self):
        self.assert_refused("hf:org/tiny", "HF_TOKEN: is no token", HF_TOKEN="a\nHost: b")
        self.assert_refused("hf:org/tiny", "HF_ENDPOINT=nowhere: expected an address", HF_ENDPOINT="nowhere")
        self.assert_refused("hf:org/tiny", "HF_HUB_DOWNLOAD_TIMEOUT=0: expected seconds", HF_HUB_DOWNLOAD_TIMEOUT="0")
        self.assert_refused("hf:tiny", "hf:tiny: is no name of a model on the hub; expected hf:ORG/NAME")

    def test_offline(self):
        self.assert_refused("hf:org/tiny", "HF_HUB_OFFLINE is set and it is not whole in", HF_HUB_OFFLINE="1")
        self.assertEqual(self.hub.seen(), [])
        self.assert_opens("hf:org/tiny")
        self.hub.requests.clear()
        self.assert_opens("hf:org/tiny:Q8_0", HF_HUB_OFFLINE="TRUE")
        self.assertEqual(self.hub.seen(), [])

    def test_no_network(self):
        nowhere = "http://127.0.0.1:1"
        self.assert_refused("hf:org/tiny", f"cannot reach {nowhere}", "check the network", HF_ENDPOINT=nowhere)
        self.assert_opens("hf:org/tiny")
        result = self.assert_opens("hf:org/tiny", HF_ENDPOINT=nowhere)
        self.assertIn("using what was fetched before", result.stderr)

    def test_odd_redirects(self):
        for location in ("file:///etc/passwd", "//", "http://user:word@127.0.0.1/"):
            self.hub.location = location
            self.assert_refused("hf:org/tiny", "redirects to nowhere")

    def test_no_hub_at_all(self):
        self.hub.api_faults = [("status", 200, {}, b"<html>"), ("status", 200, {}, b"{}")]
        self.assert_refused("hf:org/tiny", "is no JSON; check HF_ENDPOINT")
        self.assert_refused("hf:org/tiny", "names no commit; check HF_ENDPOINT")


if __name__ == "__main__":
    unittest.main()
