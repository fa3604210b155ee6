package packages

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"
)

// secret is the operator's word for the registry of these tests.
const secret = "s3cretword"

// reg is an index and a registry of npm, which asks for a word and misbehaves by name.
type reg struct {
	*httptest.Server
	asked atomic.Int64
	files map[string][]byte
	pages map[string]string // projects of the index, as HTML
	packs map[string]string // packages of npm, as JSON
}

func newRegistry(t testing.TB) *reg {
	t.Helper()
	r := &reg{files: map[string][]byte{}, pages: map[string]string{}, packs: map[string]string{}}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	r.Start()
	t.Cleanup(r.Close)
	r.python(t)
	r.node(t)
	return r
}

func (r *reg) count() int64 { return r.asked.Load() }

// environ are the operator's variables.
func (r *reg) environ() []string {
	host := r.Listener.Addr().String()
	return []string{"PIP_INDEX_URL=http://me:" + secret + "@" + host + "/simple", "npm_config_registry=http://me:" + secret + "@" + host + "/npm/"}
}

func (r *reg) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.asked.Add(1)
	if user, word, _ := q.BasicAuth(); user != "me" || word != secret {
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	name := strings.Trim(strings.TrimPrefix(strings.TrimPrefix(q.URL.Path, "/simple/"), "/npm/"), "/")
	page, isPage := r.pages[name]
	pack, isPack := r.packs[name]
	switch {
	case name == "locked":
		http.Error(w, "not you", http.StatusForbidden)
	case name == "failing":
		http.Error(w, "oh no", http.StatusInternalServerError)
	case name == "nopage":
		w.Header().Set("Content-Type", "image/png")
	case strings.HasPrefix(q.URL.Path, "/simple/") && isPage:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, page)
	case strings.HasPrefix(q.URL.Path, "/npm/") && isPack:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, pack)
	case r.files[name] != nil:
		if strings.HasPrefix(name, "files/cut") {
			w.Header().Set("Content-Length", "100000")
		}
		_, _ = w.Write(r.files[name])
	default:
		http.NotFound(w, q)
	}
}

// judge checks that an error is a failure of a kind, and that nothing of the host is in
// its text.
func (r *reg) judge(t testing.TB, err error, want Reason) {
	t.Helper()
	f, ok := errors.AsType[*Failure](err)
	if !ok || f.Reason != want {
		t.Errorf("got %+v, want a failure %q", err, want)
		return
	}
	text := strings.ReplaceAll(f.Text, r.Listener.Addr().String(), "registry.test")
	for _, bad := range []string{secret, "://", os.TempDir(), "3128", "site-packages"} {
		if strings.Contains(text, bad) {
			t.Errorf("the text has %q: %s", bad, text)
		}
	}
	t.Log(text)
}

// project adds a page with wheels that this test makes.
func (r *reg) project(t testing.TB, name, version string, tag string, requires []string, files map[string]string) {
	t.Helper()
	module := strings.ReplaceAll(name, "-", "_")
	file := module + "-" + version + "-" + tag + ".whl"
	data := wheelOf(t, name, version, tag, requires, files)
	r.files["files/"+file] = data
	sum := sha256.Sum256(data)
	r.pages[name] += fmt.Sprintf("<a href=\"/files/%s#sha256=%s\">%s</a>\n", file, hex.EncodeToString(sum[:]), file)
}

const pure = "py3-none-any"

func (r *reg) python(t testing.TB) {
	r.project(t, "demo-app", "1.5", pure, []string{"helper>=1", `extra ; extra == "more"`}, map[string]string{
		"demo_app.py": "import helper\ndef main():\n    print('demo 1.5 with helper', helper.version)\n", "entry_points.txt": "[console_scripts]\ndemo-app = demo_app:main\n",
	})
	r.project(t, "demo-app", "2.0", pure, nil, map[string]string{"demo_app.py": ""})
	r.project(t, "extra", "1.0", pure, nil, map[string]string{"extra.py": ""})
	for _, v := range []string{"1.0", "2.0"} {
		r.project(t, "helper", v, pure, nil, map[string]string{"helper.py": "version = '" + v + "'\n"})
	}
	r.project(t, "old-fan", "1.0", pure, []string{"helper<2"}, map[string]string{"old_fan.py": ""})
	r.project(t, "new-fan", "1.0", pure, []string{"helper>=2"}, map[string]string{"new_fan.py": ""})
	r.project(t, "foreign", "1.0", "cp27-cp27mu-plan9_mips", nil, map[string]string{"foreign.py": ""})
	r.project(t, "cut", "1.0", pure, nil, map[string]string{"cut.py": ""})
	r.pages["sourceonly"] = `<a href="/files/sourceonly-1.0.tar.gz">x</a>`
	r.pages["tampered"] = `<a href="/files/helper-1.0-py3-none-any.whl#sha256=` + strings.Repeat("0", 64) + `">x</a>`
	r.pages["tampered"] = strings.ReplaceAll(r.pages["tampered"], "helper", "tampered")
	r.files["files/tampered-1.0-py3-none-any.whl"] = r.files["files/helper-1.0-py3-none-any.whl"]
	r.pages["elsewhere"] = `<a href="http://files.elsewhere.test/elsewhere-1.0-py3-none-any.whl">x</a>`
}

// wheelOf makes a wheel.
func wheelOf(t testing.TB, name, version, tag string, requires []string, files map[string]string) []byte {
	t.Helper()
	info := strings.ReplaceAll(name, "-", "_") + "-" + version + ".dist-info/"
	metadata := "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\nProvides-Extra: more\n"
	for _, r := range requires {
		metadata += "Requires-Dist: " + r + "\n"
	}
	all := map[string]string{info + "METADATA": metadata, info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: " + tag + "\n"}
	for at, text := range files {
		if at == "entry_points.txt" {
			at = info + at
		}
		all[at] = text
	}
	record := ""
	for _, at := range slices.Sorted(maps.Keys(all)) {
		sum := sha256.Sum256([]byte(all[at]))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", at, base64.RawURLEncoding.EncodeToString(sum[:]), len(all[at]))
	}
	all[info+"RECORD"] = record + info + "RECORD,,\n"
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, at := range slices.Sorted(maps.Keys(all)) {
		f, err := z.Create(at)
		check(t, err)
		_, err = io.WriteString(f, all[at])
		check(t, err)
	}
	check(t, z.Close())
	return b.Bytes()
}

// pack adds a package of npm.
func (r *reg) pack(t testing.TB, name string, versions ...map[string]any) {
	t.Helper()
	all := map[string]any{}
	last := ""
	for _, v := range versions {
		last = v["version"].(string)
		at := "files/" + strings.ReplaceAll(name, "/", "-") + "-" + last + ".tgz"
		files, _ := v["files"].(map[string]string)
		delete(v, "files")
		v["name"] = name
		manifest, err := json.Marshal(v, json.Deterministic(true))
		check(t, err)
		data := tarballOf(t, string(manifest), files)
		r.files[at] = data
		sum := sha512.Sum512(data)
		dist := map[string]any{"tarball": r.URL + "/" + at, "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
		if own, ok := v["dist"].(map[string]any); ok {
			maps.Copy(dist, own)
		}
		v["dist"] = dist
		all[last] = v
	}
	text, err := json.Marshal(map[string]any{"name": name, "dist-tags": map[string]any{"latest": last}, "versions": all})
	check(t, err)
	r.packs[name] = string(text)
}

func (r *reg) node(t testing.TB) {
	type m = map[string]any
	r.pack(t, "dep", m{"version": "1.0.0", "files": map[string]string{"index.js": "module.exports = '1.0.0'\n"}}, m{"version": "2.0.0"})
	r.pack(t, "tool", m{
		"version": "1.2.0", "dependencies": m{"dep": "^1"}, "bin": m{"tool": "cli.js"}, "scripts": m{"postinstall": "touch ran", "install": "touch ran"},
		"files": map[string]string{"cli.js": "#!/usr/bin/env node\nconsole.log('tool 1.2.0 with dep', require('dep'))\n"},
	})
	r.pack(t, "@corp/lib", m{"version": "1.0.0"})
	r.pack(t, "picky", m{"version": "1.0.0", "peerDependencies": m{"dep": "^1"}})
	r.pack(t, "tampered", m{"version": "1.0.0", "dist": m{"integrity": "sha512-" + base64.StdEncoding.EncodeToString(make([]byte, 64))}})
	r.pack(t, "elsewhere", m{"version": "1.0.0", "dist": m{"tarball": "http://files.elsewhere.test/x.tgz"}})
}

func tarballOf(t testing.TB, manifest string, files map[string]string) []byte {
	t.Helper()
	all := map[string]string{"package/package.json": manifest}
	for at, text := range files {
		all["package/"+at] = text
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, at := range slices.Sorted(maps.Keys(all)) {
		check(t, w.WriteHeader(&tar.Header{Name: at, Mode: 0o644, Size: int64(len(all[at]))}))
		_, err := io.WriteString(w, all[at])
		check(t, err)
	}
	check(t, w.Close())
	check(t, z.Close())
	return b.Bytes()
}

// left counts what is in the directory of stages.
func (s *Store) left(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir(s.stages())
	check(t, err)
	return len(entries)
}
