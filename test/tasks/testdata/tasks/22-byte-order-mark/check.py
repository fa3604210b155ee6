from taskcheck import data, need, passes, text, untouched

untouched("stock.csv")
need(data("load.py").startswith(b"\xef\xbb\xbfimport csv"), "load.py has lost its own byte order mark")
passes("python3", "load.py")
need(text("total.txt") == "screw=40\nnail=2\n", "total.txt holds " + text("total.txt"))
