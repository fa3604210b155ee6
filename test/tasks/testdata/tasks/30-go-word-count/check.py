from taskcheck import need, passes, text, untouched

untouched("drinks.txt", "go.mod")
need(text("counts.txt") == "juice 1\nmilk 2\ntea 3\n", "counts.txt holds " + text("counts.txt"))
with open("more.txt", "w") as f:
    f.write("b A a C b d e f g")
for _ in range(2):
    shown = passes("go", "run", ".", "more.txt", timeout=240)
    need(shown.split()[::2] == list("abcdefg"), "the words are not sorted: " + shown)
