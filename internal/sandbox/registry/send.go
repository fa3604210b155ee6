package registry

import (
	"crypto"
	_ "crypto/md5" // a page may give nothing better, and pip checks it
	_ "crypto/sha1"
	_ "crypto/sha256"
	_ "crypto/sha512"
	"encoding/hex"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/metier-run/metier/internal/guard"
)

// digest is a short name for a text.
func digest(text string) string {
	h := crypto.SHA256.New()
	_, _ = io.WriteString(h, text)
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// hasher is what checks a hash such as "sha256=..."; nil when there is none.
func hasher(text string) (hash.Hash, string) {
	kind, want, _ := strings.Cut(text, "=")
	kinds := map[string]crypto.Hash{
		"md5": crypto.MD5, "sha1": crypto.SHA1, "sha224": crypto.SHA224,
		"sha256": crypto.SHA256, "sha384": crypto.SHA384, "sha512": crypto.SHA512,
	}
	if h, ok := kinds[kind]; ok {
		return h.New(), strings.ToLower(want)
	}
	return nil, ""
}

// metadataEnd is what the name of a wheel's metadata ends in (PEP 658).
const metadataEnd = ".metadata"

// send hands a file over that a page has named.
func (s *Session) send(w http.ResponseWriter, r *http.Request, id, name string) {
	l, ok := s.link(id)
	if !ok {
		http.Error(w, "no page has named this file", http.StatusNotFound)
		return
	}
	most, what := s.file, name
	if l.what != "" {
		what = l.what
	}
	if wheel, is := strings.CutSuffix(name, metadataEnd); is && l.metadata != "" && wheel != "" {
		beside := *l.url
		beside.Path, beside.RawPath = beside.Path+metadataEnd, ""
		l.url, most = &beside, s.page
		l.hash = strings.TrimPrefix(l.metadata, "true")
	}
	resp, t := s.fetch(r.Context(), l.via, l.url, http.Header{"Accept": {"*/*"}, "Accept-Encoding": {"identity"}})
	if t != nil {
		s.refuse(w, t, what, false)
		return
	}
	defer resp.Body.Close()
	if resp.ContentLength > most {
		s.refuse(w, trouble(TooLarge, resp.Request.URL), what, false)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if resp.ContentLength >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
	}
	if r.Method == http.MethodHead {
		return
	}
	if reason, begun := s.pour(w, resp.Body, l.hash, most); reason != "" {
		if r.Context().Err() != nil {
			reason = Late
		}
		t := trouble(reason, resp.Request.URL)
		if !begun {
			s.refuse(w, t, what, false)
			return
		}
		t.What = plain(what)
		s.note(*t)
		// The answer has begun: only breaking it off tells that it is not good.
		panic(http.ErrAbortHandler)
	}
}

// holdBack is how much of a file is kept until its hash is known, so that an installer
// never has the whole of a wrong one.
const holdBack = 64 << 10

// pour copies a body and checks it. The reason is empty when all of it is good; begun
// says that a part of it is on its way already.
func (s *Session) pour(w io.Writer, body io.Reader, hash string, most int64) (why Reason, begun bool) {
	check, want := hasher(hash)
	buffer := make([]byte, 2*holdBack)
	var held, total int64
	for {
		n, err := body.Read(buffer[held:])
		if check != nil {
			_, _ = check.Write(buffer[held : held+int64(n)]) // a hash takes everything
		}
		held, total = held+int64(n), total+int64(n)
		if total > most {
			return TooLarge, begun
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return Cut, begun
		}
		if held > holdBack {
			begun = true
			if _, err := w.Write(buffer[:held-holdBack]); err != nil {
				return Late, begun
			}
			held = int64(copy(buffer, buffer[held-holdBack:held]))
		}
	}
	s.mu.Lock()
	s.report.Bytes += total
	s.mu.Unlock()
	if check != nil && hex.EncodeToString(check.Sum(nil)) != want {
		return Mismatch, begun
	}
	if _, err := w.Write(buffer[:held]); err != nil {
		return Late, true
	}
	return "", true
}

// local hands over a wheel of a directory of the host.
func (s *Session) local(w http.ResponseWriter, r *http.Request, n, name string) {
	via, ok := place(s.settings.links, n)
	if !ok || via.url != nil || !wheelName.MatchString(name) {
		http.Error(w, "there is no such file here", http.StatusNotFound)
		return
	}
	root, err := guard.OpenRoot(via.dir)
	if err != nil {
		http.Error(w, "there is no such file here", http.StatusNotFound)
		return
	}
	defer root.Close()
	f, err := root.Open(name)
	if err != nil {
		http.Error(w, "there is no such file here", http.StatusNotFound)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() > s.file {
		http.Error(w, "the file is larger than an install may fetch", http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	if r.Method == http.MethodGet {
		_, _ = io.CopyN(w, f, info.Size()) // an installer that leaves is no trouble
	}
}
