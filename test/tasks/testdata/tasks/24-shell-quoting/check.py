import os
import shutil
import tempfile

from taskcheck import need, passes, run

work = tempfile.mkdtemp()
folder = os.path.join(work, "in put")
os.mkdir(folder)
shutil.copy("backup.sh", work)
need(run("bash", "backup.sh", "in put", cwd=work).stdout.strip() == "0 files", "a folder without text files does not give 0 files")
for name in ("x y.txt", "*.txt", "q'uote.txt"):
    open(os.path.join(folder, name), "w").close()
need(passes("bash", "backup.sh", "in put", cwd=work).strip() == "3 files", "three names with signs do not give 3 files")
need(sorted(os.listdir(os.path.join(work, "backup"))) == ["*.txt", "q'uote.txt", "x y.txt"], "the copies have other names")
shutil.rmtree(work)
