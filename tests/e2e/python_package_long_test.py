"""`pip install .` into a fresh environment: the package and the program work there, away from the build."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = os.path.join(os.environ["HR_TEST_DATA"], "gguf/llama-F32.gguf")
SCRIPT = """
import sys, headrace
model = sys.argv[1]
greedy = dict(max_new_tokens=4, ignore_eos=True, do_sample=False)
with headrace.pipeline(model) as pipe:
    here = pipe(["hello there"], **greedy)[0].text
client = headrace.serve(model)
there = client.generate(["hello there"], **greedy)[0].text
client.terminate_server()
assert here and here == there, (here, there)
"""


class PipInstall(unittest.TestCase):
    def test_the_installed_package_works(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "venv", folder + "/venv"], check=True)
            python = folder + "/venv/bin/python"
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(ROOT)],
                           check=True)
            clean = {name: value for name, value in os.environ.items()
                     if name not in ("PYTHONPATH", "HEADRACE_PROGRAM")}
            subprocess.run([python, "-c", SCRIPT, MODEL], check=True, cwd=folder, timeout=120,
                           env={**clean, "XDG_RUNTIME_DIR": folder})
            version = subprocess.run([folder + "/venv/bin/headrace", "--version"], capture_output=True, text=True)
            self.assertTrue(version.stdout.startswith("headrace "), version)


if __name__ == "__main__":
    unittest.main()
