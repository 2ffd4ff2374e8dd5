"""A model hub on this machine for tests: the API, the files, and a second server ("CDN") that files in LFS redirect to."""
import hashlib
import http.server
import json
import threading
import time
import urllib.parse


def git_blob(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Repo:
    """files: path -> bytes. What ends with .gguf or .safetensors lies in LFS."""

    def __init__(self, files, commit="1" * 40, revisions=("main",), gated=False, listing=None):
        self.files = files
        self.commit = commit
        self.revisions = {*revisions, commit}
        self.gated = gated  # only readers with a token of Hub.members get content
        self.listing = sorted(files) if listing is None else listing
        self.etags = {}  # path -> an ETag that is not its digest
        self.sizes = {}  # path -> a size that is not its length


class Hub:
    def __init__(self):
        self.repos = {}
        self.members = set()  # tokens that gated repositories accept
        # What happens to the next requests for content, in order: ("cut", n): n bytes, then the connection ends;
        # ("stall", n): n bytes, then nothing; ("status", code, headers).
        self.faults = []
        self.api_faults = []  # the same for the API, ("status", ...) only
        self.spoiled = set()  # SHA-256 of what arrives with a wrong last byte
        self.takes_ranges = True
        self.piece_pause = 0  # seconds between the pieces of a file
        self.location = None  # where content redirects to, instead of the CDN
        self.requests = []  # (server, method, path, headers)
        self._servers = [self._start(HubHandler), self._start(CdnHandler)]
        self.url, self.cdn = (f"http://127.0.0.1:{server.server_address[1]}" for server in self._servers)

    def _start(self, handler):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        server.hub = self
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return server

    def close(self):
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def seen(self, server=None, method=None):
        """Paths of the requests so far."""
        return [r[2] for r in self.requests if server in (None, r[0]) and method in (None, r[1])]

    def ranges(self):
        """The Range headers of the requests for content on the CDN."""
        return [r[3].get("Range") for r in self.requests if r[0] == "cdn"]

    def by_digest(self, digest):
        for repo in self.repos.values():
            for data in repo.files.values():
                if sha256(data) == digest:
                    return data
        return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_name = ""

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:  # whoever asked has left
            pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.hub = self.server.hub
        self.hub.requests.append((self.server_name, self.command, self.path, dict(self.headers)))
        self.answer_path(*urllib.parse.urlsplit(self.path)[2:4])

    def answer(self, status, headers=(), body=b""):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **dict(headers)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def fail(self, status, code, headers=()):
        self.answer(status, {"X-Error-Code": code, **dict(headers)}, b'{"error":"no"}')

    def send_content(self, data, etag):
        fault = self.hub.faults.pop(0) if self.hub.faults else (None,)
        if fault[0] == "status":
            return self.answer(fault[1], fault[2], b"trouble")
        begin = 0
        asked = self.headers.get("Range")
        if asked and self.hub.takes_ranges:
            begin = int(asked.removeprefix("bytes=").split("-")[0])
            if begin >= len(data):
                return self.answer(416, {"Content-Range": f"bytes */{len(data)}"})
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - begin))
        self.send_header("ETag", etag)
        self.end_headers()
        rest = data[begin:] if fault[0] is None else data[begin:begin + fault[1]]
        step = 1 << 15
        for at in range(0, len(rest), step):
            self.wfile.write(rest[at:at + step])
            time.sleep(self.hub.piece_pause)
        self.wfile.flush()
        if fault[0] == "stall":
            time.sleep(5)
        if fault[0] is not None:
            self.close_connection = True


class CdnHandler(Handler):
    server_name = "cdn"

    def answer_path(self, path, _):
        digest = path.removeprefix("/blob/")
        data = self.hub.by_digest(digest)
        if digest in self.hub.spoiled:
            data = data[:-1] + bytes([data[-1] ^ 1])
        self.send_content(data, '"of-the-cdn"')  # not the hub's ETag, as with the real one


class HubHandler(Handler):
    server_name = "hub"

    def answer_path(self, path, query):
        if path == "/api/models":
            word = urllib.parse.parse_qs(query)["search"][0]
            ids = [name for name in self.hub.repos if word[:4] in name]
            return self.answer(200, (), json.dumps([{"id": name} for name in ids]).encode())
        if path.startswith("/api/models/"):
            return self.answer_listing(path.removeprefix("/api/models/"))
        if path.startswith("/moved/"):
            path = path.removeprefix("/moved")
        repo, _, rest = path[1:].partition("/resolve/")
        return self.answer_file(repo, *rest.split("/", 1))

    def token(self):
        return self.headers.get("Authorization", "").removeprefix("Bearer ")

    def answer_listing(self, path):
        if self.hub.api_faults:
            return self.answer(*self.hub.api_faults.pop(0)[1:])
        name, _, revision = path.partition("/revision/")
        repo = self.hub.repos.get(name)
        if repo is None:
            return self.fail(404 if self.token() else 401, "RepoNotFound")
        if urllib.parse.unquote(revision) not in repo.revisions:
            return self.fail(404, "RevisionNotFound")
        listing = {"id": name, "sha": repo.commit, "siblings": [{"rfilename": path} for path in repo.listing]}
        self.answer(200, {"Content-Type": "application/json"}, json.dumps(listing).encode())

    def answer_file(self, name, commit, quoted):
        repo = self.hub.repos[name]
        path = urllib.parse.unquote(quoted)
        if repo.gated and self.token() not in self.hub.members:
            return self.fail(403 if self.token() else 401, "GatedRepo")
        if commit != repo.commit or path not in repo.files:
            return self.fail(404, "EntryNotFound")
        data = repo.files[path]
        facts = {"X-Repo-Commit": commit}
        if path.endswith((".gguf", ".safetensors")):
            etag = repo.etags.get(path, sha256(data))
            facts |= {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": repo.sizes.get(path, len(data))}
            location = self.hub.location or f"{self.hub.cdn}/blob/{sha256(data)}"
            return self.answer(302, {"Location": location, "ETag": '"of-the-redirect"', **facts}, b"Found")
        if not self.path.startswith("/moved/"):  # small files come by a relative redirect
            return self.answer(307, {"Location": "/moved" + self.path, **facts})
        etag = f'W/"{git_blob(data)}"'
        if self.command == "HEAD":
            self.send_response(200)
            for key, value in {**facts, "ETag": etag, "Content-Length": len(data)}.items():
                self.send_header(key, str(value))
            return self.end_headers()
        self.send_content(data, etag)
