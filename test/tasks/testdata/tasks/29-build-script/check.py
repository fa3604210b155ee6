import os
import shutil
import tempfile

from taskcheck import need, passes, run, untouched

untouched("src/units.js", "src/format.js", "src/main.js")
need(passes("node", "bundle.js") == "2000 m\n2 m\n", "bundle.js prints something else than 2000 m and 2 m")
work = tempfile.mkdtemp()
shutil.copytree("src", os.path.join(work, "src"))
for name in ("build.sh", "order.txt"):
    shutil.copy(name, work)
passes("bash", "build.sh", cwd=work)
need(passes("node", "bundle.js", cwd=work) == "2000 m\n2 m\n", "build.sh does not build a bundle that runs")
with open(os.path.join(work, "order.txt"), "a") as f:
    f.write("ghost\n")
done = run("bash", "build.sh", cwd=work)
need(done.returncode == 1 and "ghost" in done.stdout + done.stderr, "a missing module does not stop the build by name")
shutil.rmtree(work)
