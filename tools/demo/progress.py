"""A bar on the terminal for long work."""
import sys


def progress(share, text):
    """Draws the share of the work that is done, and text, over the line drawn before; nothing where nobody looks."""
    if sys.stderr.isatty():
        full = int(30 * min(1, share))
        print(f"\r[{'#' * full}{'.' * (30 - full)}] {share:4.0%}  {text}\033[K", end="" if share < 1 else "\n", file=sys.stderr, flush=True)
