package hostile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/metier-run/metier/internal/sandbox"
)

func honestRows() []row {
	return []row{
		{id: "fs04", what: "read the own skill", kind: honest, try: func(x *trial) *outcome {
			return x.line("cat "+x.own()+"/SKILL.md", "honest instructions")
		}},
		{id: "nt09", what: "a server of one's own on loopback", kind: honest, try: func(x *trial) *outcome {
			return x.python(`
import http.server, threading, urllib.request
s = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=s.serve_forever, daemon=True).start()
open("page", "w").write("served " + str(6 * 7))
print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open("http://127.0.0.1:%d/page" % s.server_port).read().decode())
`, "served 42")
		}},
		{id: "rs13", what: "exit status, empty input", kind: honest, try: exitStatus},
		{id: "rs14", what: "process substitution, pipes, here-documents, jobs in bash", kind: honest, try: func(x *trial) *outcome {
			return x.line(`set -o pipefail; diff <(echo a; echo b) <(printf 'a\nb\n') && cat <<E | tr a-z A-Z | tee out
here $((6*7))
E
sleep 0.01 & wait; cat out`, "HERE 42")
		}},
		{id: "rs15", what: "git, tar, chmod +x, cp -p, touch -d, a virtual environment", kind: honest, costly: true, try: workbench},
		{id: "rs25", what: "python with processes and shared memory", kind: honest, try: func(x *trial) *outcome {
			return x.python(`
import multiprocessing as m
def f(n): return n * n
if __name__ == "__main__":
    with m.Pool(3) as p: print("squares", sum(p.map(f, range(10))))
`, "squares 285")
		}},
		{id: "rs26", what: "node with a worker thread and WebAssembly", kind: honest, try: func(x *trial) *outcome {
			return x.node(`const {Worker}=require('worker_threads');
const m=new WebAssembly.Memory({initial:1}); new Uint8Array(m.buffer)[0]=42;
new Worker("require('worker_threads').parentPort.postMessage(6*7)",{eval:true}).on('message',v=>console.log('worker',v,new Uint8Array(m.buffer)[0],require('os').cpus().length>0))`, "worker 42 42")
		}},
		{id: "rs27", what: "compile a program and run it", kind: honest, try: func(x *trial) *outcome {
			x.program("cc")
			return x.line(`echo '#include <stdio.h>
int main(void) { printf("compiled %d\n", 6 * 7); }' > p.c && cc -O1 -o p p.c && ./p`, "compiled 42")
		}},
	}
}

// program is a program of this machine, by its real path; without it the row's
// cell stays as it is.
func (x *trial) program(name string) string {
	x.Helper()
	for _, dir := range []string{"/usr/bin", "/usr/local/bin", "/bin"} {
		if path, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		x.Skipf("this machine has no %s", name)
	}
	return path
}

// works runs a launch that must end well and say want.
func (x *trial) works(l sandbox.Launch, want string) *outcome {
	x.Helper()
	r, err := sandbox.Run(x.Context(), x.b, l)
	if wrong := good(r, err, want); wrong != "" {
		return &outcome{broken: []string{wrong}}
	}
	return &outcome{}
}

func good(r sandbox.Result, err error, want string) string {
	switch {
	case err != nil:
		return err.Error()
	case !r.OK():
		return fmt.Sprintf("%s, exit %d %s: %.300s %.300s", r.Ended, r.Exit, r.Signal, r.Stdout.Text(), r.Stderr.Text())
	case !seen(r, want):
		return fmt.Sprintf("it does not say %q: %.300s %.300s", want, r.Stdout.Text(), r.Stderr.Text())
	}
	return ""
}

func (x *trial) line(text, want string) *outcome {
	x.Helper()
	l := x.l
	l.Line = text
	return x.works(l, want)
}

func (x *trial) python(text, want string) *outcome {
	x.Helper()
	l := x.l
	write(x.T, filepath.Join(x.work, "main.py"), text)
	l.Argv = []string{x.program("python3"), filepath.Join(x.work, "main.py")}
	return x.works(l, want)
}

func (x *trial) node(text, want string) *outcome {
	x.Helper()
	l := x.l
	l.Argv = []string{x.program("node"), "-e", text}
	return x.works(l, want)
}

func exitStatus(x *trial) *outcome {
	l := x.l
	l.Line = "if read -r line; then echo input; fi; exit 7"
	r, err := sandbox.Run(x.Context(), x.b, l)
	o := &outcome{}
	if err != nil || r.Ended != sandbox.Exited || r.Exit != 7 || seen(r, "input") {
		o.broken = append(o.broken, fmt.Sprintf("%v %+v", err, r))
	}
	return o
}

func workbench(x *trial) *outcome {
	for _, name := range []string{"git", "tar", "python3"} {
		x.program(name)
	}
	return x.line(`set -e
git init -q repo && cd repo && echo one > f && git add f && git -c user.name=a -c user.email=a@example.org commit -q -m one && git log --oneline | wc -l && cd ..
printf '#!/bin/sh\necho ran\n' > s && chmod +x s && ./s
tar czf r.tgz repo && mkdir un && tar xzf r.tgz -C un && cp -p s t && touch -d 2001-02-03 t && [ t -ot s ]
/usr/bin/python3 -m venv --without-pip v && v/bin/python -c 'print("venv", 6*7)'`, "venv 42")
}

// companion is the honest launch that runs beside attempt number i, and what is
// to be said against its end.
func (x *trial) companion(i int) (sandbox.Launch, func(sandbox.Result, error) string) {
	x.Helper()
	l := x.launch(x.scratch())
	n := strconv.FormatUint(uint64(number()), 10)
	want := func(text string) func(sandbox.Result, error) string {
		return func(r sandbox.Result, err error) string { return good(r, err, text) }
	}
	switch i % 6 {
	case 0:
		l.Argv = []string{x.program("python3"), "-c", "import json; print(json.dumps({'n': 6*7})); open('made', 'w').write('x')"}
		return l, want(`{"n": 42}`)
	case 1:
		l.Argv = []string{x.program("node"), "-e", "console.log(JSON.stringify({n:6*7})); require('fs').writeFileSync('made','x')"}
		return l, want(`{"n":42}`)
	case 2:
		l.Line = "for i in 1 2 3; do echo $((i*14)); done | sort -r | head -1 | tee made"
		return l, want("42")
	case 3:
		l.Argv = []string{x.attack(), n, "output", "1"}
		return l, want("held=output:written")
	case 4:
		l.Argv = []string{x.attack(), n, "output", "200"}
		return l, func(r sandbox.Result, err error) string {
			if err == nil && r.Stdout.Total < 200<<20 {
				return fmt.Sprintf("of 200 MiB only %d bytes came", r.Stdout.Total)
			}
			return good(r, err, "held=output:written")
		}
	}
	mark := "hostile-" + random()
	beat := filepath.Join(l.Dir, "made")
	l.Argv = []string{x.attack(), n, "stay", beat, "daemon", mark}
	return l, func(r sandbox.Result, err error) string {
		if len(marked(mark)) > 0 {
			return "its child is still there"
		}
		return good(r, err, "held=stay:left")
	}
}

// accompany runs an honest launch and says what was wrong with it.
func accompany(x *trial, l sandbox.Launch, check func(sandbox.Result, error) string) string {
	r, err := sandbox.Run(x.Context(), x.b, l)
	wrong := check(r, err)
	if wrong != "" {
		return fmt.Sprintf("%s: %s", strings.Join(append(l.Argv, l.Line), " "), wrong)
	}
	if info, err := os.Stat(filepath.Join(l.Dir, "made")); l.Line != "" && (err != nil || info.Size() == 0) {
		return "its file is not on the host's disk"
	}
	return ""
}

// start starts the attacking program and hands a function out that waits for it.
func (x *trial) start(l sandbox.Launch, verb string, args ...string) (sandbox.Job, func() *outcome) {
	x.Helper()
	n := number()
	l.Argv = append([]string{x.attack(), strconv.FormatUint(uint64(n), 10), verb}, args...)
	job, err := x.b.Start(x.Context(), l)
	if err != nil {
		return nil, func() *outcome { return &outcome{broken: []string{"launch:" + err.Error()}} }
	}
	return job, func() *outcome { return x.verdict(n, job.Wait()) }
}
