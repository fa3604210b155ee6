"""Prints the most frequent words of a file."""

import argparse
from collections import Counter


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    options = parser.parse_args()
    with open(options.file, encoding="utf-8") as f:
        counts = Counter(f.read().split())
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:3]:
        print(word, count)


if __name__ == "__main__":
    main()
