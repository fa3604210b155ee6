"""Answers jobs: inbox/NAME.json with numbers becomes outbox/NAME.json with their sum."""

import json
import os
import time

LIFETIME = 20.0  # seconds; nobody has to stop the worker


def answer(name):
    with open(os.path.join("inbox", name), encoding="utf-8") as f:
        job = json.load(f)
    result = {"sum": max(job["numbers"])}
    part = os.path.join("outbox", name + ".part")
    with open(part, "w", encoding="utf-8") as f:
        json.dump(result, f)
    os.replace(part, os.path.join("outbox", name))


def main():
    end = time.monotonic() + LIFETIME
    done = set()
    while time.monotonic() < end and "stop.json" not in done:
        for name in sorted(os.listdir("inbox")):
            if name.endswith(".json") and name not in done:
                done.add(name)
                if name != "stop.json":
                    answer(name)
        time.sleep(0.05)
    print("worker ends after", len(done), "jobs")


if __name__ == "__main__":
    main()
