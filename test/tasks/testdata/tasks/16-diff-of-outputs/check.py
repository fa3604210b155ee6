from taskcheck import need, passes, text, untouched

untouched("old.py")
need(text("changed.txt") == "p04\np11\n", "changed.txt holds " + text("changed.txt"))
old = passes("python3", "old.py")
need(passes("python3", "new.py") == old, "new.py prints other prices than old.py")
need(text("old.txt") == old and text("new.txt") == old, "old.txt or new.txt is not what the programs print")
