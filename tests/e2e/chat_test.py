"""headrace run on a terminal: line editing, history, commands, Ctrl-C, Ctrl-D."""
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import termios
import time
import unittest

from program import PROGRAM, data

CTRL_C, CTRL_D, UP = b"\x03", b"\x04", b"\x1b[A"
PROMPT = "> "


def setUpModule():
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError as error:  # a bare chroot without /dev/pts
        raise unittest.SkipTest(f"no pseudo terminals: {error}")


class Terminal:
    """The program on a pseudo terminal."""

    def __init__(self, cache, *arguments):
        self.master, slave = pty.openpty()
        self.mode = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            [PROGRAM, "run", *arguments], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "HEADRACE_CACHE": cache, "TERM": "xterm"})
        os.close(slave)
        self.text = ""

    def send(self, keys):
        os.write(self.master, keys if isinstance(keys, bytes) else keys.encode())

    def wait_for(self, pattern, seconds=60):
        """Reads until `pattern` comes; returns what was read and forgets it."""
        end = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.text)
            if found:
                read, self.text = self.text[:found.end()], self.text[found.end():]
                return read
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.master], [], [], left)[0]:
                raise AssertionError(f"{pattern!r} did not come; got {self.text!r}")
            try:
                self.text += os.read(self.master, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"the program ended before {pattern!r}; got {self.text!r}") from None

    def close(self):
        """The exit code, -1 if it does not end."""
        try:
            return self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return -1
        finally:
            os.close(self.master)


class ChatTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = folder.name

    def open(self, *arguments):
        terminal = Terminal(self.cache, data("models/llama"), "--threads", "1", *arguments)
        self.addCleanup(terminal.process.kill)
        terminal.wait_for(PROMPT)
        return terminal

    def test_answers_commands_and_end(self):
        chat = self.open("--max-tokens", "5")
        chat.send("hello\r")
        chat.wait_for(r"\[prompt (\d+) tokens.*answer 5 tokens.*\]")
        chat.wait_for(PROMPT)
        chat.send("/help\r")
        self.assertIn("/reset", chat.wait_for(r"Ctrl-C stops an answer"))
        chat.wait_for(PROMPT)
        chat.send("/rest\r")
        chat.wait_for(r"unknown command /rest")
        chat.wait_for(PROMPT)
        chat.send("/exit\r")
        self.assertEqual(chat.process.wait(timeout=20), 0)
        self.assertEqual(termios.tcgetattr(chat.master), chat.mode, "the terminal is left as it was")
        chat.close()

    def test_conversation_grows_until_reset(self):
        chat = self.open("--max-tokens", "5")

        def prompt_tokens(message):
            chat.send(message + "\r")
            read = chat.wait_for(r"\[prompt \d+ tokens[^\]]*\]")
            chat.wait_for(PROMPT)
            return int(re.search(r"prompt (\d+) tokens", read).group(1))

        first = prompt_tokens("hello")
        self.assertGreater(prompt_tokens("hello"), first)
        chat.send("/reset\r")
        chat.wait_for("forgotten")
        chat.wait_for(PROMPT)
        self.assertEqual(prompt_tokens("hello"), first)
        chat.send(CTRL_D)
        self.assertEqual(chat.close(), 0)

    def test_interrupt_at_the_prompt_gives_a_hint(self):
        chat = self.open()
        chat.send(CTRL_C)
        chat.wait_for("Ctrl-D or /exit leaves")
        chat.wait_for(PROMPT)
        chat.send("half a line" + CTRL_C.decode())
        chat.wait_for(PROMPT)
        chat.send(CTRL_D)
        self.assertEqual(chat.close(), 0)

    def test_interrupt_stops_the_answer_not_the_program(self):
        chat = self.open("--ignore-eos", "--isa", "ref")
        cancelled = False
        for _ in range(5):  # a tiny model may be done before the key is read
            chat.send("hello\r")
            chat.wait_for(r"hello\r\n[\s\S]")
            chat.send(CTRL_C)
            cancelled = "cancelled" in chat.wait_for(r"ended by (cancelled|length)")
            chat.wait_for(PROMPT)
            if cancelled:
                break
            chat.send("/reset\r")
            chat.wait_for("forgotten")
            chat.wait_for(PROMPT)
        self.assertTrue(cancelled)
        chat.send("/exit\r")
        self.assertEqual(chat.close(), 0)

    def test_history_is_kept(self):
        chat = self.open("--max-tokens", "2")
        chat.send("remember the mill\r")
        chat.wait_for(r"answer \d+ tokens")
        chat.wait_for(PROMPT)
        chat.send(CTRL_D)
        self.assertEqual(chat.close(), 0)
        self.assertTrue(os.path.exists(os.path.join(self.cache, "chat-history")))
        chat = self.open("--max-tokens", "2")
        chat.send(UP)
        chat.wait_for("remember the mill")
        chat.send(CTRL_C)
        chat.wait_for(PROMPT)
        chat.send(CTRL_D)
        self.assertEqual(chat.close(), 0)

    def test_interrupt_of_one_answer_ends_with_130(self):
        terminal = Terminal(self.cache, data("models/llama"), "--threads", "1", "-p", "x", "--ignore-eos", "--isa", "ref",
                            "--temperature", "2")
        self.addCleanup(terminal.process.kill)
        terminal.wait_for(r"\w")
        time.sleep(0.2)
        os.kill(terminal.process.pid, signal.SIGINT)
        read = terminal.wait_for(r"ended by (cancelled|length)")
        self.assertEqual(terminal.close(), 130 if "cancelled" in read else 0)


if __name__ == "__main__":
    unittest.main()
