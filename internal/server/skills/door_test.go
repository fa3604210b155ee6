package skills_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/server/skills"
	"github.com/metier-run/metier/skill"
)

// registry reads one root anew when it is asked to.
type registry struct {
	root string
	err  error

	mu  sync.Mutex
	now *skill.Snapshot
}

func (r *registry) Snapshot() *skill.Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *registry) Rescan(ctx context.Context) (*skill.Snapshot, error) {
	if r.err != nil {
		return nil, r.err
	}
	s, err := skill.Load(ctx, skill.Options{Roots: []skill.Root{{Dir: r.root}}})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = s
	return s, nil
}

const pdf = `---
name: pdf
description: Fill in PDF forms.
license: Apache-2.0
compatibility: Requires python3.
metadata:
  version: "1.0"
allowed-tools: Bash(git:*) Read
---

# PDF

Read references/forms.md.
`

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		check(t, os.MkdirAll(filepath.Dir(p), 0o755))
		check(t, os.WriteFile(p, []byte(text), 0o644))
		at := time.Date(2026, 8, 29, 14, 0, 0, 5e8, time.FixedZone("", 2*3600))
		check(t, os.Chtimes(p, at, at))
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rig is a server with the door alone, over a root of three folders.
type rig struct {
	url string
	reg *registry
	log *strings.Builder
}

func newRig(t *testing.T, change func(*skills.Options)) *rig {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	write(t, root, map[string]string{
		"pdf/SKILL.md": pdf, "pdf/references/forms.md": "forms é", "pdf/assets/a.png": "\x89PNG\x00", "pdf/page.html": "<script>alert(1)</script>",
		"tides/SKILL.md": "---\nname: Tides\ndescription: d\n---\n", "bad/SKILL.md": "x", "sub/pdf/SKILL.md": pdf,
	})
	r := &rig{reg: &registry{root: root}, log: &strings.Builder{}}
	_, err := r.reg.Rescan(t.Context())
	check(t, err)
	o := skills.Options{
		Registry: r.reg, Roots: []string{root}, Discovery: true, ShowPaths: true, MaxView: 1 << 10,
		Logger: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	if change != nil {
		change(&o)
	}
	h := server.New(server.Options{
		Doors: []server.Door{skills.New(o)}, Logger: o.Logger, NewID: func() string { return "x" }, Loopback: true,
	})
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

// ask sends a request and gives back status, header and body.
func (r *rig) ask(t *testing.T, method, path string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, nil)
	check(t, err)
	resp, err := http.DefaultTransport.RoundTrip(req)
	check(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	check(t, err)
	return resp.StatusCode, resp.Header, string(b)
}

func pretty(t *testing.T, body string) string {
	t.Helper()
	v := jsontext.Value(body)
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return string(v)
}

const pdfObject = `{
  "id": "pdf",
  "object": "skill",
  "name": "pdf",
  "description": "Fill in PDF forms.",
  "license": "Apache-2.0",
  "compatibility": "Requires python3.",
  "metadata": {
    "version": "1.0"
  },
  "allowed_tools": [
    "Bash(git:*)",
    "Read"
  ],
  "files": [
    {
      "path": "SKILL.md",
      "bytes": 196,
      "kind": "manifest",
      "text": true
    },
    {
      "path": "assets/a.png",
      "bytes": 5,
      "kind": "asset",
      "text": false
    },
    {
      "path": "page.html",
      "bytes": 25,
      "kind": "other",
      "text": true
    },
    {
      "path": "references/forms.md",
      "bytes": 8,
      "kind": "reference",
      "text": true
    }
  ],
  "bytes": 234,
  "origin": "discovered",
  "warnings": [],
  "modified": "2026-08-29T12:00:00Z"
}`

func TestOne(t *testing.T) {
	r := newRig(t, nil)
	for _, path := range []string{"/api/skills/pdf", "/api/skills/PDF"} {
		status, _, body := r.ask(t, "GET", path)
		if diff := cmp.Diff(pdfObject, pretty(t, body)); status != http.StatusOK || diff != "" {
			t.Errorf("%s: %d %s", path, status, diff)
		}
	}
	status, _, body := r.ask(t, "GET", "/v1/skills/pdf")
	want := strings.TrimSuffix(pdfObject, "\n}") + ",\n  \"instructions\": \"# PDF\\n\\nRead references/forms.md.\"\n}"
	if diff := cmp.Diff(want, pretty(t, body)); status != http.StatusOK || diff != "" {
		t.Errorf("/v1: %d %s", status, diff)
	}
	_, _, body = r.ask(t, "GET", "/api/skills/tides")
	for _, part := range []string{`"license":null`, `"metadata":{}`, `"allowed_tools":[]`, `"warnings":["line 2, column 7: name \"Tides\" is not`} {
		if !strings.Contains(body, part) {
			t.Errorf("%s is not in %s", part, body)
		}
	}
}

func TestListing(t *testing.T) {
	r := newRig(t, func(o *skills.Options) { o.AllowScripts = true })
	status, _, body := r.ask(t, "GET", "/api/skills")
	var l skills.Listing
	check(t, json.Unmarshal([]byte(body), &l))
	if status != http.StatusOK || !l.Enabled || l.Installable || !l.AllowScripts || !l.Discovery || len(l.Skills) != 2 || l.Skills[0].ID != "pdf" {
		t.Errorf("%d %s", status, body)
	}
	root := r.reg.root
	if diff := cmp.Diff([]string{root}, l.Roots); diff != "" {
		t.Error(diff)
	}
	want := []string{filepath.Join(root, "bad"), filepath.Join(root, "sub", "pdf")}
	var got []string
	for _, e := range l.Errors {
		got = append(got, e.Path)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestPathsAreHidden: a server that others reach tells no path of its host,
// whatever is asked.
func TestPathsAreHidden(t *testing.T) {
	r := newRig(t, func(o *skills.Options) { o.ShowPaths = false })
	check(t, os.RemoveAll(filepath.Join(r.reg.root, "pdf", "references")))
	for _, path := range []string{"/api/skills", "/api/skills/pdf", "/v1/skills", "/v1/skills/pdf", "/api/skills/pdf/files/references/forms.md", "/api/skills/pdf/files/..%2f..%2fbad", "/api/skills/pdf/files/assets/a.png"} {
		_, _, body := r.ask(t, "GET", path)
		if strings.Contains(body, r.reg.root) || strings.Contains(body, filepath.Base(filepath.Dir(r.reg.root))) {
			t.Errorf("%s tells a path: %s", path, body)
		}
	}
	_, _, body := r.ask(t, "GET", "/api/skills")
	for _, part := range []string{`"roots":[]`, `{"path":"bad","message":"read SKILL.md: line 1: there is no front matter`, `{"path":"pdf","message":"another skill has the name pdf already`} {
		if !strings.Contains(body, part) {
			t.Errorf("%s is not in %s", part, body)
		}
	}
	r.reg.err = errors.New("disk " + r.reg.root)
	status, _, body := r.ask(t, "POST", "/api/skills/rescan")
	if status != http.StatusServiceUnavailable || strings.Contains(body, r.reg.root) || !strings.Contains(r.log.String(), "disk") {
		t.Errorf("%d %s; log %s", status, body, r.log)
	}
}

func TestRescan(t *testing.T) {
	r := newRig(t, nil)
	write(t, r.reg.root, map[string]string{"new/SKILL.md": "---\nname: new\ndescription: d\n---\n"})
	if status, _, _ := r.ask(t, "GET", "/api/skills/new"); status != http.StatusNotFound {
		t.Errorf("before: %d", status)
	}
	status, _, body := r.ask(t, "POST", "/api/skills/rescan")
	if status != http.StatusOK || !strings.Contains(body, `{"enabled":true,`) || !strings.Contains(body, `"id":"new"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, _, _ := r.ask(t, "GET", "/api/skills/new"); status != http.StatusOK {
		t.Errorf("after: %d", status)
	}
	r.reg.err = errors.New("disk is gone")
	status, _, body = r.ask(t, "POST", "/api/skills/rescan")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "disk is gone") {
		t.Errorf("%d %s", status, body)
	}
	if status, _, _ := r.ask(t, "GET", "/api/skills/new"); status != http.StatusOK {
		t.Errorf("a rescan that failed took the skills away: %d", status)
	}
	status, header, _ := r.ask(t, "GET", "/api/skills/rescan")
	if status != http.StatusNotFound || header.Get("Content-Type") != "application/json" {
		t.Errorf("a skill called rescan: %d", status)
	}
}

func TestFile(t *testing.T) {
	r := newRig(t, nil)
	tests := []struct {
		path   string
		status int
		body   string
	}{
		{"references/forms.md", 200, "forms é"},
		{"references%2fforms.md", 200, "forms é"},
		{"./references/../references/forms.md", 307, ""},
		{"page.html", 200, "<script>alert(1)</script>"},
		{"SKILL.md", 200, pdf},
		{"assets/a.png", 415, `{"error":"assets/a.png is not text (5 bytes) and is not shown"}`},
		{"references", 400, `{"error":"\"references\" is a folder: name a file in it"}`},
		{"gone.md", 404, `{"error":"there is no file \"gone.md\" in this skill"}`},
		{"..%2f..%2fbad%2fSKILL.md", 400, `{"error":"path \"../../bad/SKILL.md\": \"..\" is refused, because files outside this folder may not be opened: write the path from the top of the folder"}`},
		{"%2fetc%2fpasswd", 400, ""},
		{"~root", 400, ""},
		{"a%5cb", 400, ""},
		{"a%00b", 400, ""},
		{"SKILL.md?offset=x", 400, `{"error":"offset \"x\" is not a whole number: give the byte to start from"}`},
		{"SKILL.md?offset=-1", 400, ""},
		{"SKILL.md?offset=1000", 400, ""},
	}
	for _, tt := range tests {
		status, header, body := r.ask(t, "GET", "/api/skills/pdf/files/"+tt.path)
		if status != tt.status || tt.body != "" && body != tt.body {
			t.Errorf("%s: %d %s", tt.path, status, body)
		}
		if status == http.StatusOK && header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: type %s", tt.path, header.Get("Content-Type"))
		}
		if status != http.StatusTemporaryRedirect && header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: a browser may guess the type", tt.path)
		}
	}
	status, _, body := r.ask(t, "GET", "/api/skills/none/files/SKILL.md")
	if status != http.StatusNotFound || !strings.HasPrefix(body, `{"error":"there is no skill \"none\" here`) {
		t.Errorf("%d %s", status, body)
	}
}

// TestLongFile: a cut is told, and the parts together are the file.
func TestLongFile(t *testing.T) {
	r := newRig(t, nil)
	long := strings.Repeat("é", 1500)
	write(t, r.reg.root, map[string]string{"pdf/long.md": long})
	_, err := r.reg.Rescan(t.Context())
	check(t, err)
	var got strings.Builder
	next, parts := "0", 0
	for next != "" && parts < 10 {
		_, header, body := r.ask(t, "GET", "/api/skills/pdf/files/long.md?offset="+next)
		got.WriteString(body)
		if len(body) > 1<<10 || header.Get(skills.TotalHeader) != "3000" {
			t.Errorf("%d bytes of %s", len(body), header.Get(skills.TotalHeader))
		}
		next = header.Get(skills.NextHeader)
		parts++
	}
	if got.String() != long || parts != 3 {
		t.Errorf("%d parts of %d bytes", parts, got.Len())
	}
}

func TestPage(t *testing.T) {
	r := newRig(t, nil)
	write(t, r.reg.root, map[string]string{"abc/SKILL.md": "---\nname: abc\ndescription: d\n---\n"})
	_, err := r.reg.Rescan(t.Context())
	check(t, err)
	tests := []struct{ query, ids, more string }{
		{"", "abc pdf tides", "false"},
		{"?limit=3", "abc pdf tides", "false"},
		{"?limit=2", "abc pdf", "true"},
		{"?limit=2&after=pdf", "tides", "false"},
		{"?limit=1&after=abc", "pdf", "true"},
		{"?after=gone", "pdf tides", "false"},
		{"?after=tides", "", "false"},
		{"?order=desc", "tides pdf abc", "false"},
		{"?order=desc&after=pdf", "abc", "false"},
		{"?order=desc&after=gone&limit=1", "abc", "false"},
		{"?limit=0", "", "true"},
	}
	for _, tt := range tests {
		_, _, body := r.ask(t, "GET", "/v1/skills"+tt.query)
		var p skills.Page
		check(t, json.Unmarshal([]byte(body), &p))
		var ids []string
		for _, o := range p.Data {
			ids = append(ids, o.ID)
		}
		first, last := `"first_id":null`, `"last_id":null`
		if len(ids) > 0 {
			first, last = `"first_id":"`+ids[0]+`"`, `"last_id":"`+ids[len(ids)-1]+`"`
		}
		if strings.Join(ids, " ") != tt.ids || !strings.Contains(body, `"has_more":`+tt.more) || !strings.Contains(body, first) || !strings.Contains(body, last) || p.Object != "list" {
			t.Errorf("%s: %s", tt.query, body)
		}
	}
	for query, want := range map[string]string{
		"?limit=x":     `{"error":{"message":"limit \"x\" is not a whole number from 0: give how many skills to list","type":"invalid_request_error","param":"limit","code":null}}`,
		"?limit=-1":    `"param":"limit"`,
		"?order=older": `"param":"order"`,
	} {
		if status, _, body := r.ask(t, "GET", "/v1/skills"+query); status != http.StatusBadRequest || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
}

func TestErrorsByPrefix(t *testing.T) {
	r := newRig(t, nil)
	tests := []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/v1/skills/none", 404, `{"error":{"message":"there is no skill \"none\" here: GET /api/skills or /v1/skills lists those there are","type":"invalid_request_error","param":"skill_id","code":"skill_not_found"}}`},
		{"GET", "/api/skills/none", 404, `{"error":"there is no skill \"none\" here: GET /api/skills or /v1/skills lists those there are"}`},
		{"DELETE", "/api/skills/pdf", 405, `{"error":"/api/skills/pdf does not take DELETE: use GET, HEAD"}`},
		{"GET", "/api/skills/pdf/nothing", 404, `{"error":"there is nothing at GET /api/skills/pdf/nothing"}`},
	}
	for _, tt := range tests {
		if status, _, body := r.ask(t, tt.method, tt.path); status != tt.status || body != tt.want {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, status, body)
		}
	}
	// A failure of the host is for the log.
	check(t, os.Chmod(filepath.Join(r.reg.root, "pdf"), 0o755))
	check(t, os.WriteFile(filepath.Join(r.reg.root, "pdf", "SKILL.md"), []byte("no front matter any more"), 0o644))
	status, _, body := r.ask(t, "GET", "/v1/skills/pdf")
	if status != http.StatusInternalServerError || !strings.Contains(body, `"type":"server_error"`) || strings.Contains(body, "front matter") || !strings.Contains(r.log.String(), "front matter") {
		t.Errorf("%d %s; log %s", status, body, r.log)
	}
}

func TestTurnedOff(t *testing.T) {
	r := newRig(t, func(o *skills.Options) { o.Registry = nil })
	const off = "skills are turned off on this server (--no-skills)"
	tests := []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/api/skills", 200, `{"enabled":false,"installable":false,"allowScripts":false,"discovery":false,"roots":[],"skills":[],"errors":[]}`},
		{"GET", "/v1/skills", 200, `{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}`},
		{"GET", "/v1/skills/pdf", 404, `{"error":{"message":"` + off + `","type":"invalid_request_error","param":null,"code":"skills_disabled"}}`},
		{"GET", "/api/skills/pdf", 404, `{"error":"` + off + `"}`},
		{"GET", "/api/skills/pdf/files/SKILL.md", 404, `{"error":"` + off + `"}`},
		{"POST", "/api/skills/rescan", 404, `{"error":"` + off + `"}`},
	}
	for _, tt := range tests {
		if status, _, body := r.ask(t, tt.method, tt.path); status != tt.status || body != tt.want {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, status, body)
		}
	}
}

// TestPending: what was being written is told, over the real registry.
func TestPending(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	write(t, root, map[string]string{"pdf/SKILL.md": pdf})
	reg, err := skill.Open(t.Context(), skill.Options{Roots: []skill.Root{{Dir: root}}})
	check(t, err)
	write(t, root, map[string]string{"new/SKILL.md": "---\nname: new\ndescription: d\n---\n"})
	_, err = reg.RescanExcept(t.Context(), func(dir string) bool { return filepath.Base(dir) == "new" })
	check(t, err)
	for _, paths := range []bool{true, false} {
		r := newRig(t, func(o *skills.Options) { o.Registry, o.ShowPaths = reg, paths })
		want := `{"path":"new","message":"it was being written`
		if paths {
			want = `{"path":"` + filepath.Join(root, "new") + `","message":"it was being written`
		}
		if _, _, body := r.ask(t, "GET", "/api/skills"); !strings.Contains(body, want) || strings.Contains(body, `"id":"new"`) {
			t.Errorf("paths %v: %s", paths, body)
		}
		if _, _, body := r.ask(t, "POST", "/api/skills/rescan"); !strings.Contains(body, `"errors":[]`) || !strings.Contains(body, `"id":"new"`) {
			t.Errorf("after: %s", body)
		}
		_, err = reg.RescanExcept(t.Context(), func(dir string) bool { return filepath.Base(dir) == "new" })
		check(t, err)
		if _, _, body := r.ask(t, "GET", "/api/skills"); !strings.Contains(body, `"id":"new"`) {
			t.Errorf("what was there is gone while it is written: %s", body)
		}
		check(t, os.RemoveAll(filepath.Join(root, "new")))
		_, err = reg.Rescan(t.Context())
		check(t, err)
		write(t, root, map[string]string{"new/SKILL.md": "---\nname: new\ndescription: d\n---\n"})
		_, err = reg.RescanExcept(t.Context(), func(dir string) bool { return filepath.Base(dir) == "new" })
		check(t, err)
	}
}

func TestOwns(t *testing.T) {
	d := skills.New(skills.Options{})
	for path, want := range map[string]bool{
		"/api/skills": true, "/api/skills/x/y": true, "/api/skillset": false, "/v1/skills": false, "/v1/skills/x": false, "/": false,
	} {
		if d.Owns(httptest.NewRequest(http.MethodGet, path, nil)) != want {
			t.Errorf("Owns(%q) is %v", path, !want)
		}
	}
}

func TestConcurrentRescans(t *testing.T) {
	r := newRig(t, nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			method, path := "GET", "/api/skills"
			if i%2 == 0 {
				method, path = "POST", "/api/skills/rescan"
			}
			if status, _, body := r.ask(t, method, path); status != http.StatusOK || !strings.Contains(body, `"id":"pdf"`) {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	wg.Wait()
}
