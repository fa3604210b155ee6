import os

from taskcheck import need, passes, text

need(not os.path.exists("textutil.py"), "textutil.py is still there")
need("def shorten" in text("lib/text.py"), "lib/text.py does not hold the functions")
for path in ("main.py", "lib/numbers.py"):
    need("textutil" not in text(path), path + " still names textutil")
need(passes("python3", "main.py") == "A Small Report\nnumber 7\nnumber 12…\n", "main.py prints something else")
