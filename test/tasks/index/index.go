// Package index is the package index of the tasks: a handler that serves what the
// folder testdata/index holds, as wheels to pip and as tarballs to npm, so that a task
// which installs something needs no network and finds the same thing each time.
//
// It takes nothing in and knows no other package. Its answers are the same bytes every
// time. A [Handler] is safe for concurrent use.
//
// Start at [New].
package index

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The places below the address that the index is served on, for the settings of pip
// and npm.
const (
	PipPath = "/pip/simple/"
	NpmPath = "/npm/"
)

// release is one version of a package.
type release struct {
	name, version string
	file          string // the archive's file name
	data          []byte
	manifest      jsontext.Value // package.json, for npm
}

// Handler serves the packages.
type Handler struct {
	mux      *http.ServeMux
	pip, npm []release
}

// New packs what a folder holds: pip/NAME-VERSION/ with what a wheel installs, and
// npm/NAME-VERSION/ with a package.json.
func New(folder fs.FS) (*Handler, error) {
	h := &Handler{mux: http.NewServeMux()}
	var err error
	if h.pip, err = packAll(folder, "pip", wheel); err != nil {
		return nil, err
	}
	if h.npm, err = packAll(folder, "npm", tarball); err != nil {
		return nil, err
	}
	h.mux.HandleFunc("GET "+PipPath+"{name}/", h.simple)
	h.mux.HandleFunc("GET /pip/files/{file}", func(w http.ResponseWriter, r *http.Request) { send(w, r, h.pip) })
	h.mux.HandleFunc("GET "+NpmPath+"{name}", h.packument)
	h.mux.HandleFunc("GET "+NpmPath+"{name}/-/{file}", func(w http.ResponseWriter, r *http.Request) { send(w, r, h.npm) })
	return h, nil
}

// ServeHTTP answers pip and npm.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// packAll packs each folder of a kind.
func packAll(folder fs.FS, kind string, pack func(files map[string][]byte, r *release) error) ([]release, error) {
	entries, err := fs.ReadDir(folder, kind)
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	var all []release
	for _, e := range entries {
		name, version, ok := strings.Cut(e.Name(), "-")
		if !ok || !e.IsDir() {
			return nil, fmt.Errorf("read index: %s/%s is no folder NAME-VERSION", kind, e.Name())
		}
		files, err := filesOf(folder, path.Join(kind, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read index: %w", err)
		}
		r := release{name: name, version: version}
		if err := pack(files, &r); err != nil {
			return nil, fmt.Errorf("pack %s %s: %w", name, version, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func filesOf(folder fs.FS, dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(folder, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[strings.TrimPrefix(name, dir+"/")], err = fs.ReadFile(folder, name)
		return err
	})
	return files, err
}

// wheel packs files as pip installs them.
func wheel(files map[string][]byte, r *release) error {
	files = maps.Clone(files)
	info := r.name + "-" + r.version + ".dist-info/"
	files[info+"METADATA"] = fmt.Appendf(nil, "Metadata-Version: 2.1\nName: %s\nVersion: %s\n", r.name, r.version)
	files[info+"WHEEL"] = []byte("Wheel-Version: 1.0\nGenerator: metier-tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
	var record strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		sum := sha256.Sum256(files[name])
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(files[name]))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	files[info+"RECORD"] = []byte(record.String())

	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := z.Create(name)
		if err != nil {
			return err
		}
		if _, err := f.Write(files[name]); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	r.file, r.data = r.name+"-"+r.version+"-py3-none-any.whl", out.Bytes()
	return nil
}

// tarball packs files as npm unpacks them.
func tarball(files map[string][]byte, r *release) error {
	manifest, ok := files["package.json"]
	if !ok {
		return fmt.Errorf("it has no package.json")
	}
	var out bytes.Buffer
	g := gzip.NewWriter(&out)
	t := tar.NewWriter(g)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		head := &tar.Header{Name: "package/" + name, Mode: 0o644, Size: int64(len(files[name])), ModTime: time.Unix(0, 0)}
		if err := t.WriteHeader(head); err != nil {
			return err
		}
		if _, err := t.Write(files[name]); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	if err := g.Close(); err != nil {
		return err
	}
	r.file, r.data, r.manifest = r.name+"-"+r.version+".tgz", out.Bytes(), manifest
	return nil
}

// simple is pip's page of a package.
func (h *Handler) simple(w http.ResponseWriter, r *http.Request) {
	var page strings.Builder
	for _, p := range h.pip {
		if p.name == r.PathValue("name") {
			sum := sha256.Sum256(p.data)
			fmt.Fprintf(&page, "<a href=\"../../files/%s#sha256=%s\">%[1]s</a><br>\n", p.file, hex.EncodeToString(sum[:]))
		}
	}
	if page.Len() == 0 {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(w, "<!DOCTYPE html><html><body>\n%s</body></html>\n", page.String()) // a client that is gone misses it
}

// packument is npm's page of a package.
func (h *Handler) packument(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	versions := map[string]any{}
	latest := ""
	for _, p := range h.npm {
		if p.name != name {
			continue
		}
		var manifest map[string]any
		if err := json.Unmarshal(p.manifest, &manifest); err != nil {
			http.Error(w, "package.json is no JSON", http.StatusInternalServerError)
			return
		}
		sum := sha512.Sum512(p.data)
		manifest["dist"] = map[string]any{
			"tarball":   "http://" + r.Host + NpmPath + name + "/-/" + p.file,
			"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		}
		versions[p.version], latest = manifest, p.version
	}
	if latest == "" {
		http.NotFound(w, r)
		return
	}
	page, err := json.Marshal(map[string]any{"name": name, "dist-tags": map[string]any{"latest": latest}, "versions": versions}, json.Deterministic(true))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(page) // a client that is gone misses it
}

func send(w http.ResponseWriter, r *http.Request, all []release) {
	i := slices.IndexFunc(all, func(p release) bool { return p.file == r.PathValue("file") })
	if i < 0 {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(all[i].data) // a client that is gone misses it
}
