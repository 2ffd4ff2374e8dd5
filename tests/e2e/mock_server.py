"""A small server with the OpenAI API for tests of clients: words are tokens, and answers are made of the prompt."""
import http.server
import json
import threading
import time


class MockServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, token_seconds=0.0, salt=True):
        super().__init__(("127.0.0.1", 0), Handler)
        self.token_seconds = token_seconds
        self.salt = salt  # whether `cache_salt` is known
        self.bodies = []  # of completions
        self.headers_seen = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass  # clients may go away

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_):
        pass

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(200, {"data": [{"id": "mock"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_chat = "messages" in body
        prompt = body["messages"][0]["content"] if is_chat else body["prompt"]
        tokens = len(prompt.split()) + (7 if is_chat else 1)
        if self.path == "/tokenize":
            return self.answer(200, {"count": tokens})
        self.server.bodies.append(body)
        self.server.headers_seen.append(dict(self.headers))
        if "cache_salt" in body and not self.server.salt:
            return self.answer(400, {"error": {"message": "cache_salt is unknown"}})
        if "REFUSE" in prompt:
            return self.answer(503, {"error": {"message": "overloaded"}})
        self.stream(body, is_chat, prompt, tokens)

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def stream(self, body, is_chat, prompt, tokens):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        count = body["max_completion_tokens" if is_chat else "max_tokens"]
        for i in range(count):
            if self.server.token_seconds:
                time.sleep(self.server.token_seconds)
            if "BREAK" in prompt and i == 2:
                self.close_connection = True
                return
            piece = f" {prompt.split()[-1]}{i}"
            choice = {"index": 0, "finish_reason": "length" if i + 1 == count else None}
            if is_chat:
                choice["delta"] = {"content": piece, **({"role": "assistant"} if i == 0 else {})}
            else:
                choice["text"] = piece
            self.chunk("data: " + json.dumps({"choices": [choice], "usage": None}) + "\n\n")
        usage = {"prompt_tokens": tokens, "completion_tokens": count, "total_tokens": tokens + count}
        self.chunk("data: " + json.dumps({"choices": [], "usage": usage}) + "\n\ndata: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()
