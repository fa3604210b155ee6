from taskcheck import need, text, untouched

untouched("requirements.txt")
rows = [line.split() for line in text("table.txt").splitlines() if line.strip()]
need(rows == [["apples", "12"], ["pears", "7"], ["figs", "110"]], "table.txt holds " + text("table.txt"))
need(text("table.txt").startswith("apples  12"), "the columns of table.txt are not as gridtext pads them")
need("from gridtext import Grid" in text("table.py"), "table.py does not use gridtext any more")
