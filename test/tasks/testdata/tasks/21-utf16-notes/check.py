from taskcheck import data, need, passes, untouched

untouched("notes.txt")
want = "## Käse\nwürzig, 3 €\n## Brot\nmit Kümmel: ja\n"
need(data("notes.md") == want.encode("utf-8"), "notes.md holds %r" % data("notes.md"))
passes("python3", "convert.py")
need(data("notes.md") == want.encode("utf-8"), "another run of convert.py changes notes.md")
