"""docs/performance/<processor>.json, and the tables of docs/performance.md made from all of them."""
import json
import pathlib
import re
import subprocess
import time

BEGIN, END = "<!-- figures: written by bench/compare_peers -->", "<!-- end of figures -->"


def processor():
    """A name for the kind of processor: what its vector extensions are counts, not its clock."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    flags = re.search(r"^flags\s*: (.*)$", text, re.M)[1].split()
    best = next((name for flag, name in (("amx_int8", "amx"), ("avx512_vnni", "avx512"), ("avx2", "avx2"))
                 if flag in flags), "plain")
    vendor = re.search(r"^vendor_id\s*: (.*)$", text, re.M)[1]
    return f"{ {'GenuineIntel': 'intel', 'AuthenticAMD': 'amd'}.get(vendor, vendor.lower()) }-{best}"


def commit(root):
    return subprocess.run(["git", "-C", root, "rev-parse", "--short=12", "HEAD"], capture_output=True,
                          text=True).stdout.strip()


def shown(command):
    """A command line without folders: what anyone can repeat."""
    return " ".join(str(part).rsplit("/", 1)[-1] if str(part).startswith("/") else str(part) for part in command)


def empty():
    return {"cases": {}}


def file_of(root):
    return root / "docs/performance" / f"{processor()}.json"


def load(root):
    return json.loads(file_of(root).read_text()) if file_of(root).exists() else empty()


def save(root, result):
    result["day"] = time.strftime("%Y-%m-%d", time.gmtime())
    result["commit"] = commit(root)
    file_of(root).parent.mkdir(parents=True, exist_ok=True)
    file_of(root).write_text(json.dumps(result, indent=1) + "\n")


def better_peer(case):
    peers = {name: rate for name, rate in case["median"].items() if name != "headrace"}
    return max(peers.items(), key=lambda item: item[1])


def ratio(case):
    return case["median"]["headrace"] / better_peer(case)[1]


def summary(case):
    name, rate = better_peer(case)
    return f"{case['median']['headrace']:.1f} tokens/s, {ratio(case):.2f} x {name} ({rate:.1f})"


def runs_of(result):
    counts = {len(rates) for case in result["cases"].values() for rates in case["rates"].values()}
    return "to".join(f" {n} " for n in sorted({min(counts), max(counts)})).strip()


def figures(root):
    """The tables, the kinds of processor side by side."""
    results = {path.stem: json.loads(path.read_text()) for path in sorted((root / "docs/performance").glob("*.json"))}
    lines = []
    for kind, result in results.items():
        limits = result["limits"]
        lines += [f"**{kind}**: {limits['cpu']}, {limits['usable_cpus']} CPUs; {result['day']}, commit "
                  f"{result['commit']}; {runs_of(result)} runs of each engine; peers: {', '.join(f'{n} ({v})' for n, v in result['peers'].items())}.", ""]
    names = list(dict.fromkeys(name for result in results.values() for name in result["cases"]))
    lines += ["| tokens/s (x better peer) | " + " | ".join(results) + " |", "|---|" + "---:|" * len(results)]
    for name in names:
        cells = []
        for result in results.values():
            case = result["cases"].get(name)
            cells.append(f"{case['median']['headrace']:.1f} ({ratio(case):.2f} x {better_peer(case)[0]})" if case
                         else "not run")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "Limits (`headrace bench machine`):", "", "| limit | threads | " + " | ".join(results) + " |",
              "|---|---:|" + "---:|" * len(results)]
    keys = list(dict.fromkeys((row["limit"], row["threads"], row["unit"])
                              for result in results.values() for row in result["limits"]["limits"]))
    for limit, threads, unit in keys:
        cells = []
        for result in results.values():
            row = next((r for r in result["limits"]["limits"] if (r["limit"], r["threads"]) == (limit, threads)), None)
            cells.append(f"{row['value']:.2f} {unit}" if row else "none")
        lines.append(f"| {limit} | {threads} | " + " | ".join(cells) + " |")
    example = next(iter(next(iter(results.values()))["cases"].values()), None)
    if example:
        lines += ["", "Commands of the first row, as an example; those of all rows, and every run, are in "
                  "`docs/performance/`:", "", "```", *example["commands"].values(), "```"]
    return lines


def write(root):
    path = root / "docs/performance.md"
    before, rest = path.read_text().split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(before + "\n".join([BEGIN, "", *figures(root), "", END]) + after)
    return path.relative_to(root)
