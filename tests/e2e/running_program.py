"""A headrace that goes on running, and the lines that it writes to standard error."""
import os
import re
import signal
import subprocess
import threading
import time

from program import PROGRAM

# Times that a scenario bounds are doubled where other tests run beside, and not held under sanitizers.
SANITIZED = bool(os.environ.get("HR_SANITIZE"))
SLACK = 20 if SANITIZED else (1 if os.environ.get("HEADRACE_LONG") else 2)


def stat_fields(process):
    """Fields of /proc/PROCESS/stat from the state on. Throws OSError where there is no such process."""
    with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


class RunningProgram:
    """Starts `headrace ARGUMENTS...`, on a machine of virtual_network.py or here; its end is the end of the with block, or
    end()."""

    def __init__(self, *arguments, env=None, program=PROGRAM, machine=None):
        start = machine.popen if machine else subprocess.Popen
        self.process = start([program, *arguments], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, errors="replace",
                             env={**os.environ, **(env or {})})
        self.lines = []
        self.arrived = threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            with self.arrived:
                self.lines.append(line.rstrip("\n"))
                self.arrived.notify_all()
        with self.arrived:
            self.lines.append(None)
            self.arrived.notify_all()

    def log(self):
        with self.arrived:
            return self._all()

    def _all(self):
        return "\n".join(line for line in self.lines if line is not None)

    def num_lines(self):
        """How many lines there are so far: for wait_for_line(begin=)."""
        with self.arrived:
            return len(self.lines)

    def wait_for_line(self, pattern, timeout=60 * SLACK, begin=0):
        """The first match in a line of the log, those before the call included, from line `begin` on."""
        end = time.monotonic() + timeout
        seen = begin
        with self.arrived:
            while True:
                for line in self.lines[seen:]:
                    match = line is not None and re.search(pattern, line)
                    if match:
                        return match
                    if line is None:
                        raise AssertionError(f"the program ended without a line like {pattern}:\n" + self._all())
                seen = len(self.lines)
                if not self.arrived.wait(end - time.monotonic()):
                    raise AssertionError(f"no line like {pattern} in {timeout} s:\n" + self._all())

    def cpu_seconds(self):
        fields = stat_fields(self.process.pid)
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, signal_number=signal.SIGTERM, timeout=60 * SLACK):
        """Ends the program; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("the program did not end:\n" + self.log()) from None
        self.reader.join()
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()
