import collections
import statistics

WORDS = "tea tea coffee milk tea milk juice".split()

counts = collections.Counter(WORDS)
with open("report.txt", "w", encoding="utf-8") as f:
    for word, count in counts.top_items(2):
        f.write(f"{word} {count}\n")
    f.write(f"{statistics.average_of(len(w) for w in WORDS):.1f}\n")
