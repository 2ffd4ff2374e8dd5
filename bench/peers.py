"""Finds or builds the engines that headrace is compared with, each at its best on this machine."""
import dataclasses
import os
import pathlib
import subprocess
import sys
import tarfile

LLAMA_SDIST = "llama-cpp-python==0.3.36"
IK_REPOSITORY = "https://github.com/ikawrakow/ik_llama.cpp"
CMAKE_FLAGS = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DLLAMA_CURL=OFF", "-DLLAMA_BUILD_TESTS=OFF"]
BENCH_PROGRAMS = ["llama-bench", "llama-batched-bench"]
LLAMA_PROGRAMS = [*BENCH_PROGRAMS, "llama-server", "ggml-rpc-server"]
# g++ 12 takes the tiles' configuration for a read of 8 bytes and drops the rest; without this line AMX machines stop at
# an illegal instruction.
AMX_CALL = "_tile_loadconfig(&tc);"
AMX_BARRIER = 'asm volatile("" : : "r"(&tc) : "memory"); '


@dataclasses.dataclass
class Peer:
    bin: pathlib.Path
    version: str
    flags: list  # further flags of llama-bench under which it is often faster
    has_depth: bool
    has_jsonl: bool


def find_or_build(folder, ik_source):
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "llama.cpp": Peer(build_llama(folder), LLAMA_SDIST, [], True, True),
        "ik_llama.cpp": Peer(build_ik(folder, ik_source), "public repository", ["-rtr", "1"], False, False),
    }


def run(what, command, **kwargs):
    print(what, file=sys.stderr, flush=True)
    done = subprocess.run(command, capture_output=True, text=True, **kwargs)
    if done.returncode != 0:
        sys.exit(f"error: {what}: failed\n{(done.stdout + done.stderr)[-3000:]}")


def is_built(build, programs):
    return all((build / "bin" / program).exists() for program in programs)


def build(name, source, programs):
    target = source / "build"
    run(f"configuring {name}", ["cmake", "-S", source, "-B", target, "-G", "Ninja", *CMAKE_FLAGS,
                                "-DLLAMA_OPENSSL=OFF", "-DGGML_RPC=ON"])
    run(f"building {name} (10 to 20 minutes on two cores)",
        ["cmake", "--build", target, "--target", *programs, "--parallel", str(os.cpu_count())])


def build_llama(folder):
    for source in folder.glob("llama_cpp_python-*/vendor/llama.cpp"):
        if is_built(source / "build", LLAMA_PROGRAMS):
            return source / "build/bin"
    run(f"fetching {LLAMA_SDIST}", [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", LLAMA_SDIST.split("==")[0],
                                    "-d", folder, LLAMA_SDIST])
    with tarfile.open(next(folder.glob("llama_cpp_python-*.tar.gz"))) as sdist:
        sdist.extractall(folder)
    source = next(folder.glob("llama_cpp_python-*/vendor/llama.cpp"))
    amx = source / "ggml/src/ggml-cpu/amx/mmq.cpp"
    text = amx.read_text()
    if AMX_BARRIER not in text:
        amx.write_text(text.replace(AMX_CALL, AMX_BARRIER + AMX_CALL))
    build("llama.cpp", source, LLAMA_PROGRAMS)
    return source / "build/bin"


def build_ik(folder, given):
    source = given or folder / "ik_llama.cpp"
    if is_built(source / "build", BENCH_PROGRAMS):
        return source / "build/bin"
    if not source.exists():
        run(f"fetching {IK_REPOSITORY}", ["git", "clone", "--depth", "1", IK_REPOSITORY, source])
    build("ik_llama.cpp", source, BENCH_PROGRAMS)
    return source / "build/bin"
