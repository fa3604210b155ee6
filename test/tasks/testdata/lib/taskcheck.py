"""What the checkers of the tasks share.

A checker runs in the finished workspace. It judges what the files are and what
the programs do, never how the model came there, and needs python3, node, bash
and go at most. It ends with status 0 when the task is done; otherwise it says
what is missing and ends with status 1.
"""

import os
import subprocess
import sys


def need(ok, message):
    """Ends the check with the message unless ok."""
    if not ok:
        print("not done: " + message)
        sys.exit(1)


def data(path):
    """The bytes of a file of the workspace."""
    need(os.path.isfile(path), path + " is missing")
    with open(path, "rb") as f:
        return f.read()


def text(path):
    """The text of a file of the workspace, which must be UTF-8; line ends stay."""
    try:
        return data(path).decode("utf-8")
    except UnicodeDecodeError:
        need(False, path + " is not UTF-8")


def start(path):
    """The bytes that the file had when the task began."""
    with open(os.path.join(os.environ["TASK_START"], path), "rb") as f:
        return f.read()


def untouched(*paths):
    """Ends the check unless the files are as they were when the task began."""
    for path in paths:
        need(data(path) == start(path), path + " was to stay as it was")


def run(*argv, **more):
    """Runs a program in the workspace and gives its result, with text output."""
    more.setdefault("timeout", 60)
    try:
        return subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)
    except subprocess.TimeoutExpired:
        need(False, " ".join(argv) + " does not end")


def passes(*argv, **more):
    """Runs a program, which must end with status 0, and gives what it printed."""
    done = run(*argv, **more)
    need(done.returncode == 0, "%s ends with %d:\n%s" % (" ".join(argv), done.returncode, (done.stdout + done.stderr)[-2000:]))
    return done.stdout
