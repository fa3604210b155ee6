package registry

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/metier-run/metier/internal/sandbox"
)

// Session is one launch's use of a front. It forgets everything when it ends, but for
// its report.
type Session struct {
	*Front
	kind Kind
	// token is the first part of every path, so that nobody else on a machine where the
	// network of a launch is the machine's own can use the operator's credentials.
	token string

	mu     sync.Mutex
	links  map[string]link
	held   int64 // bytes of links
	report Report
	ended  bool
	work   sync.WaitGroup
}

// Environ is what tells an installer where the front is, each "NAME=value". address is
// where it listens; empty means [sandbox.ProxyAddress]. It is in the environment and
// not among the arguments because a backend may move that address, and rewrites it there.
func (s *Session) Environ(address string) []string {
	if address == "" {
		address = sandbox.ProxyAddress
	}
	base := "http://" + address + "/" + s.token
	if s.kind == Npm {
		return []string{"npm_config_registry=" + base + "/npm/"}
	}
	var env, more []string
	for i := range s.settings.pip {
		at := base + "/pip/" + strconv.Itoa(i) + "/"
		if i == 0 {
			env = append(env, "PIP_INDEX_URL="+at)
			continue
		}
		more = append(more, at)
	}
	if len(s.settings.pip) == 0 {
		env = append(env, "PIP_NO_INDEX=1")
	}
	if len(more) > 0 {
		env = append(env, "PIP_EXTRA_INDEX_URL="+strings.Join(more, " "))
	}
	var links []string
	for i := range s.settings.links {
		links = append(links, base+"/links/"+strconv.Itoa(i)+"/")
	}
	if len(links) > 0 {
		env = append(env, "PIP_FIND_LINKS="+strings.Join(links, " "))
	}
	return env
}

// Serve answers the connections of the launch. It returns when l is closed, or when ctx
// ends, and then nothing of it is under way. It closes l. A session is served once.
func (s *Session) Serve(ctx context.Context, l net.Listener) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: s.wait, IdleTimeout: s.wait, MaxHeaderBytes: s.head,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	_ = server.Serve(&narrow{Listener: l, places: make(chan struct{}, s.atOnce)}) // it ends with the listener
	cancel()
	_ = server.Close() // whoever is still connected is gone
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.work.Wait()
}

// enter is false once the session has ended.
func (s *Session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.work.Add(1)
	return true
}

// narrow is a listener that closes connections for which there is no place. It goes on
// accepting, since only the call of Accept learns of the end of a launch.
type narrow struct {
	net.Listener
	places chan struct{}
}

func (n *narrow) Accept() (net.Conn, error) {
	for {
		conn, err := n.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case n.places <- struct{}{}:
			return &placed{Conn: conn, leave: sync.OnceFunc(func() { <-n.places })}, nil
		default:
			_ = conn.Close()
		}
	}
}

type placed struct {
	net.Conn
	leave func()
}

func (p *placed) Close() error {
	p.leave()
	return p.Conn.Close()
}

// ServeHTTP answers one request of the installer.
func (s *Session) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.work.Done()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "only reading is possible here", http.StatusMethodNotAllowed)
		return
	}
	parts, ok := s.parts(r.URL)
	if !ok {
		http.Error(w, "there is no such page here", http.StatusNotFound)
		return
	}
	switch {
	case s.kind == Pip && len(parts) == 2 && parts[0] == "pip":
		s.project(w, r, parts[1], "")
	case s.kind == Pip && len(parts) == 3 && parts[0] == "pip":
		s.project(w, r, parts[1], parts[2])
	case s.kind == Pip && len(parts) == 2 && parts[0] == "links":
		s.findLinks(w, r, parts[1])
	case s.kind == Pip && len(parts) == 3 && parts[0] == "dir":
		s.local(w, r, parts[1], parts[2])
	case len(parts) == 3 && parts[0] == "file":
		s.send(w, r, parts[1], parts[2])
	case s.kind == Npm && (len(parts) == 2 || len(parts) == 3) && parts[0] == "npm":
		s.packument(w, r, strings.Join(parts[1:], "/"))
	default:
		http.Error(w, "there is no such page here", http.StatusNotFound)
	}
}

// parts are the parts of a path after the token; a slash at the end is none.
func (s *Session) parts(u *url.URL) ([]string, bool) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), "/"+s.token+"/")
	if !ok {
		return nil, false
	}
	parts := strings.Split(strings.TrimSuffix(rest, "/"), "/")
	for i, p := range parts {
		text, err := url.PathUnescape(p)
		if err != nil || text == "" || text == "." || text == ".." {
			return nil, false
		}
		parts[i] = text
	}
	return parts, true
}

// refuse answers with a sentence and notes why.
func (s *Session) refuse(w http.ResponseWriter, t *Trouble, what string, page bool) {
	t.What, t.Page = plain(what), page
	if t.Reason == Missing && page {
		s.found(what, Project{}) // another place may have it
	} else {
		s.note(*t)
	}
	http.Error(w, s.sentence(*t), statusOf(t.Reason))
}

// place is the n-th of some places.
func place(all []source, n string) (source, bool) {
	i, err := strconv.Atoi(n)
	if err != nil || i < 0 || i >= len(all) {
		return source{}, false
	}
	return all[i], true
}

// link is a file that a page has named.
type link struct {
	url  *url.URL
	via  source
	hash string // "sha256=..." in hexadecimal; empty when the page gave none
	// metadata is the hash of the file's metadata, which lies beside it, or "true" where
	// only that it is there is known; empty where there is none.
	metadata string
	// what is the package that it is of; empty where the file's name tells.
	what string
}

var errTooMany = errors.New("more files are named than are kept")

// keep remembers a link under an id that does not change from session to session. What
// is kept is bounded as a page is.
func (s *Session) keep(l link) (id string, err error) {
	id = digest(l.url.String() + " " + l.hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.links[id]; known {
		return id, nil
	}
	size := int64(len(l.url.String()) + len(l.hash) + len(l.metadata) + len(id))
	if s.held+size > s.page {
		return "", errTooMany
	}
	s.held += size
	s.links[id] = l
	return id, nil
}

func (s *Session) link(id string) (link, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.links[id]
	return l, ok
}
