# Says of files whether they parse as Python. Arguments: the directory that they are in,
# and how many there are; they are named 0, 1 and so on. It compiles and never runs
# them. Each line of its output is one verdict: number, "ok", or number, line, column,
# message.
import sys
import warnings

folder, count = sys.argv[1], int(sys.argv[2])
warnings.simplefilter("ignore")
print("python", "%d.%d" % sys.version_info[:2], flush=True)
for n in range(count):
    with open("%s/%d" % (folder, n), "rb") as f:
        data = f.read()
    try:
        compile(data, "file", "exec", 0, True)
        verdict = "%d ok" % n
    except SyntaxError as e:
        message = " ".join(str(e.msg).split())[:200]
        verdict = "%d %d %d %s: %s" % (n, e.lineno or 0, e.offset or 0, type(e).__name__, message)
    except ValueError as e:
        verdict = "%d 0 0 %s: %s" % (n, type(e).__name__, " ".join(str(e).split())[:200])
    except (MemoryError, RecursionError, OverflowError):
        continue
    sys.stdout.buffer.write(verdict.encode("utf-8", "replace") + b"\n")
    sys.stdout.buffer.flush()
