"""The program under test and what tests ask of it."""
import os
import subprocess
import unittest

PROGRAM = os.environ["HEADRACE_PROGRAM"]
DATA = os.environ["HR_TEST_DATA"]


def data(path):
    return os.path.join(DATA, path)


def run(*arguments, stdin="", env=None, timeout=120):
    """Runs headrace with its standard streams on pipes."""
    return subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(env or {})})


class ProgramTest(unittest.TestCase):
    def assert_fails(self, result, *parts, code=1):
        """One line on standard error that begins with the program's name and holds all `parts`; nothing else."""
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertTrue(result.stderr.startswith("headrace: "), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
