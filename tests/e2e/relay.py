"""A TCP relay of the tests' own: counts what crosses it."""
import contextlib
import socket
import threading


class Relay:
    """Passes connections on to a port of this machine; `sent`: bytes from whoever connected to that port."""

    def __init__(self, port):
        self.target = port
        self.sent = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.threads = [threading.Thread(target=self._accept)]
        self.threads[0].start()

    def _accept(self):
        with contextlib.suppress(OSError):  # shut down
            while True:
                thread = threading.Thread(target=self._serve, args=self.listener.accept()[:1])
                self.threads.append(thread)
                thread.start()

    def _serve(self, client):
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.target)) as server:
            back = threading.Thread(target=self._pass, args=(server, client, False))
            back.start()
            self._pass(client, server, True)
            back.join()

    def _pass(self, source, drain, counts):
        source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 18):
                if counts:
                    with self.lock:
                        self.sent += len(data)
                drain.sendall(data)
        for end in (source, drain):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Once those whom it serves have ended their connections."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join()
