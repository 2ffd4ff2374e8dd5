"""Flags that the comparisons have in common."""
import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def parser(description, repeat):
    """`repeat`: how often each engine or setup runs where nothing else is said."""
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--headrace", type=pathlib.Path, default=ROOT / "build/release/headrace", help="the program")
    p.add_argument("--peers", type=pathlib.Path, default=ROOT / "build/peers", help="where peers are built or found")
    p.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models", help="where random models are kept")
    p.add_argument("--model-tool", type=pathlib.Path, default=ROOT.parent / "shared/tools/make_random_gguf.py",
                   help="writes random models; not needed when --models has them")
    p.add_argument("--repeat", type=int, default=repeat, help=f"runs of each (default: {repeat})")
    p.add_argument("--keep", action="store_true", help="keep earlier figures of what is not run now")
    return p


def parsed(p):
    """The arguments, whose program is there."""
    args = p.parse_args()
    if not args.headrace.exists():
        sys.exit(f"error: {args.headrace}: not there; run scripts/build, or give --headrace")
    return args


def wanted(cases, texts):
    """Those whose name holds one of `texts` (none: all)."""
    found = [case for case in cases if any(text in case.name for text in texts or [""])]
    if not found:
        sys.exit(f"error: no case's name holds any of: {' | '.join(texts)}")
    return found
