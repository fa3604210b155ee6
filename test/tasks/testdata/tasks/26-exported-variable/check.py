from taskcheck import need, run, text
import os

need(text("deploy.txt") == "region: eu-west\nstage: test\n", "deploy.txt holds " + text("deploy.txt"))
need("eu-west" not in text("deploy.sh"), "the region is written into deploy.sh")
clean = {k: v for k, v in os.environ.items() if k not in ("REGION", "STAGE")}
need(run("bash", "-n", "deploy.sh", env=clean).returncode == 0, "deploy.sh is no shell script any more")
