from taskcheck import need, passes, run, untouched

untouched("words.txt")
need(passes("python3", "top.py", "words.txt") == "red 3\nblue 2\nwhite 2\n", "without the option the output changed")
need(passes("python3", "top.py", "--limit", "1", "words.txt") == "red 3\n", "--limit 1 does not print one word")
need(len(passes("python3", "top.py", "words.txt", "--limit=5").splitlines()) == 5, "--limit=5 does not print five words")
for bad in ("0", "-2", "many"):
    need(run("python3", "top.py", "--limit=" + bad, "words.txt").returncode == 2, "--limit=" + bad + " is no usage error")
