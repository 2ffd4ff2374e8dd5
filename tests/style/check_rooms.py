"""What the style asks and no compiler checks. Usage: check_rooms.py REPOSITORY; prints each fault, exit code 1 if any.

- A file of src/ includes only its own room and rooms before it, in the order of the hr_room lines of CMakeLists.txt;
  a public header (include/headrace/) includes nothing of src/.
- No file names a folder of some machine or a package registry's host.
- A flag that README.md or docs/ show exists in the program's option tables or in a script.
- Links from one file of the documentation to another lead somewhere.
"""

import pathlib
import re
import sys

TEXT_SUFFIXES = {".cc", ".h", ".c", ".rs", ".py", ".md", ".cmake", ".txt", ".toml", ".json", ".svg", ".sh", ".proto", ".pyi", ""}
# Flags of other programs that the documentation shows.
FOREIGN_FLAGS = {"--gtest_filter", "--preset", "--target", "--build", "--parallel"}
# Split in two so that this file does not hold what it looks for.
MACHINE_NAMES = re.compile("|".join((
    r"(?<![\w./-])/(?:wo" r"rk|ro" r"ot|ho" r"me)/\w",
    r"py" r"pi\.org", r"python" r"hosted", r"static\.crates" r"\.io", r"index\.crates" r"\.io", r"deb\.debian" r"\.org",
)))
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def room_order(root):
    text = (root / "CMakeLists.txt").read_text()
    rooms = re.findall(r"^ *hr_room\((\w+)", text, re.MULTILINE)
    if not rooms:
        sys.exit("CMakeLists.txt: no hr_room lines")
    return {room: place for place, room in enumerate(rooms)}


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def check_includes(root, faults):
    order = room_order(root)
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        name = path.relative_to(root)
        room = name.parts[1]
        if room not in order:
            faults.append(f"{name}: src/{room} has no hr_room line in CMakeLists.txt")
            continue
        text = path.read_text()
        for match in INCLUDE.finditer(text):
            included = match.group(1).split("/")[0]
            where = f"{name}:{line_of(text, match.start())}"
            if included == "headrace":
                continue
            if included not in order:
                faults.append(f'{where}: "{match.group(1)}" is not written from src/ or include/')
            elif order[included] > order[room]:
                faults.append(f"{where}: room {room} includes room {included}, which comes after it")
    for path in sorted((root / "include").rglob("*.h")):
        for match in INCLUDE.finditer(path.read_text()):
            if not match.group(1).startswith("headrace/"):
                faults.append(f'{path.relative_to(root)}: includes "{match.group(1)}", which an embedding program lacks')


def text_files(root):
    for folder in (".ci", "apps", "bench", "cmake", "docs", "examples", "include", "proto", "python", "rust", "scripts", "src", "tests"):
        for path in sorted((root / folder).rglob("*")):
            inside = path.relative_to(root)
            if "target" in inside.parts or inside.parts[:2] == ("tests", "data"):
                continue
            if path.is_file() and path.suffix in TEXT_SUFFIXES and path.name != "Cargo.lock":
                yield path
    yield from (path for path in sorted(root.iterdir()) if path.is_file() and path.suffix in TEXT_SUFFIXES)


def check_machine_names(root, faults):
    for path in text_files(root):
        text = path.read_text(errors="replace")
        for match in MACHINE_NAMES.finditer(text):
            faults.append(f"{path.relative_to(root)}:{line_of(text, match.start())}: names '{match.group(0)}...'")


def known_flags(root):
    flags = {"--help", "--version"} | FOREIGN_FLAGS
    for folder in ("src", "apps"):
        for path in (root / folder).rglob("*.cc"):
            text = path.read_text()
            names = re.findall(r'\.name = "([a-z0-9-]+)"', text)
            flags |= {"--" + name for name in names} | {"--no-" + name for name in names}  # --no- turns a switch off
            flags |= set(re.findall(r'"(--[a-z0-9-]+)"', text))
    for path in (root / "scripts").iterdir():
        for line in re.findall(r"^ *(\S.*)\) *(?:;;)?$", path.read_text(), re.MULTILINE):  # the patterns of a `case`
            flags |= set(re.findall(r"(?<!\S)--[a-z][a-z0-9-]+(?!\S)", line))
    return flags


def check_docs(root, faults):
    flags = known_flags(root)
    for path in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]:
        text = path.read_text()
        name = path.relative_to(root)
        for match in re.finditer(r"(?<![\w-])--[a-z][a-z0-9_-]+", text):
            if match.group(0) not in flags:
                faults.append(f"{name}:{line_of(text, match.start())}: no option {match.group(0)} exists")
        # Code shown there may look like a link: it is blanked, so that line numbers stay.
        text = re.sub(r"^```.*?^```", lambda code: "\n" * code.group(0).count("\n"), text, flags=re.MULTILINE | re.DOTALL)
        for match in re.finditer(r"\]\((?!https?://|#)([^)#\s]+)", text):
            if not (path.parent / match.group(1)).exists():
                faults.append(f"{name}:{line_of(text, match.start())}: {match.group(1)} does not exist")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    faults = []
    for check in (check_includes, check_machine_names, check_docs):
        check(root, faults)
    print("\n".join(faults) or "no faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
