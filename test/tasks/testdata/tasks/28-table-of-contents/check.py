from taskcheck import need, passes, start, text

want = start("README.md").decode().replace("<!-- toc -->\n", "<!-- toc -->\n- [Getting started](#getting-started)\n  - [On Linux](#on-linux)\n- [What's next?](#whats-next)\n")
need(text("README.md") == want, "README.md holds:\n" + text("README.md"))
passes("python3", "toc.py")
need(text("README.md") == want, "another run changes README.md")
