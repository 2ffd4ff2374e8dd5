"""A server under test: the real program on a port of its own, and what tests ask of it."""
import contextlib
import http.client
import json
import re
import sys
import tempfile
import time
import unittest

from running_program import SANITIZED, SLACK, RunningProgram  # noqa: F401, for tests of the server


class Reply:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    def json(self):
        return json.loads(self.body)

    def error(self):
        return self.json()["error"]


class Server(RunningProgram):
    """Starts `headrace serve MODEL FLAGS...` and waits until it is ready (or only listens, with wait=False)."""

    def __init__(self, model, *flags, wait=True, env=None, machine=None):
        super().__init__("serve", model, "--port", "0", *flags, env=env, machine=machine)
        self.machine = machine
        self.port = int(self.wait_for_line(r"listening on https?://\S+:(\d+)").group(1))
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self, timeout=60 * SLACK):
        end = time.monotonic() + timeout
        while self.process.poll() is None and time.monotonic() < end:
            with contextlib.suppress(ConnectionError):  # it may end at any time
                if self.get("/readyz").status == 200:
                    return
            time.sleep(0.05)
        self.__exit__()
        raise AssertionError("the server did not become ready:\n" + self.log())

    def connect(self, timeout=120 * SLACK):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        if self.machine:
            connection.sock = self.machine.connect("127.0.0.1", self.port, timeout)
        return connection

    def request(self, method, path, body=None, headers=None):
        connection = self.connect()
        try:
            data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
            head = {"Content-Type": "application/json"} if data is not None else {}
            connection.request(method, path, data, {**head, **(headers or {})})
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.request("GET", path, headers=headers)

    def post(self, path, body, headers=None):
        return self.request("POST", path, body, headers)

    def stream(self, path, body, headers=None):
        """The data of each event as it comes: JSON objects, and "[DONE]"."""
        connection = self.connect()
        try:
            connection.request("POST", path, json.dumps({**body, "stream": True}),
                               {"Content-Type": "application/json", **(headers or {})})
            response = connection.getresponse()
            if response.status != 200:
                raise AssertionError(f"status {response.status}: {response.read()}")
            while True:
                line = response.readline()
                if not line:
                    return
                if line.startswith(b"data: "):
                    data = line[6:].strip().decode()
                    yield data if data == "[DONE]" else json.loads(data)
                elif line.strip():
                    raise AssertionError(f"no event: {line}")
        finally:
            connection.close()

    def metric(self, name, **labels):
        """Sum of the samples of a metric whose labels include these; None where there is none."""
        found = None
        for line in self.get("/metrics").body.decode().splitlines():
            match = re.match(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$", line)
            if not match or match.group(1) != name:
                continue
            given = dict(re.findall(r'(\w+)="([^"]*)"', match.group(2) or ""))
            if all(given.get(key) == value for key, value in labels.items()):
                found = (found or 0) + float(match.group(3))
        return found

    def wait_for_metric(self, name, value, timeout, **labels):
        """Waits until the metric has this value; returns the seconds that took."""
        begin = time.monotonic()
        while (found := self.metric(name, **labels)) != value:
            if time.monotonic() - begin > timeout:
                raise AssertionError(f"{name} is {found} after {timeout} s, expected {value}")
            time.sleep(0.01)
        return time.monotonic() - begin


@contextlib.contextmanager
def keys_file(text):
    """The path of a file of keys that nobody else can read."""
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
        keys.write(text)
        keys.flush()
        yield keys.name


class ServerTest(unittest.TestCase):
    """One server for all tests of a class: `model`, `flags` and `env` say which."""
    model = None
    flags = ()
    env = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server(cls.model, *cls.flags, env=cls.env)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.end()
        log = cls.server.log()
        cls.server.__exit__()
        if code != 0:
            raise AssertionError(f"the server ended with {code}:\n{log}")

    def assert_refused(self, reply, status, code, param=None):
        self.assertEqual(reply.status, status, reply.body)
        error = reply.error()
        self.assertEqual(error["code"], code, error)
        self.assertEqual(error["param"], param, error)
        self.assertTrue(error["message"], error)
        return error


def openai_client(server, **options):
    """The real client; scripts/test installs it."""
    try:
        import openai
    except ImportError:
        sys.exit("the openai package is not there: scripts/test installs it into build/python")
    return openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0, **options)
