from taskcheck import need, passes, text

passes("python3", "report.py")
need(text("report.txt") == "tea 3\nmilk 2\n4.0\n", "report.txt holds " + text("report.txt"))
need("WORDS = \"tea tea coffee milk tea milk juice\"" in text("report.py"), "the words of report.py changed")
