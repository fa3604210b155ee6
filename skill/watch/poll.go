package watch

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// poller looks from time to time.
type poller struct {
	every time.Duration
	out   chan event
	done  chan struct{}
	end   sync.WaitGroup

	mu   sync.Mutex
	seen map[string]listing
}

// listing is a folder's entries; nil when it could not be read.
type listing map[string]fs.FileInfo

func newPoller(every time.Duration) *poller {
	p := &poller{every: every, out: make(chan event), done: make(chan struct{}), seen: map[string]listing{}}
	p.end.Go(p.look)
	return p
}

func (p *poller) events() <-chan event { return p.out }

func (p *poller) add(dir string) error {
	p.mu.Lock()
	_, known := p.seen[dir]
	p.mu.Unlock()
	if known {
		return nil
	}
	now, err := list(dir)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[dir] = now
	return nil
}

func (p *poller) remove(dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, dir)
}

func (p *poller) close() {
	close(p.done)
	p.end.Wait()
}

func (p *poller) look() {
	ticker := time.NewTicker(p.every)
	defer ticker.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-ticker.C:
		}
		for _, e := range p.changes() {
			select {
			case p.out <- e:
			case <-p.done:
				return
			}
		}
	}
}

// changes is what differs from the last look. It holds no lock while it reads.
func (p *poller) changes() []event {
	p.mu.Lock()
	before := make(map[string]listing, len(p.seen))
	for dir, l := range p.seen {
		before[dir] = l
	}
	p.mu.Unlock()
	var found []event
	for dir, was := range before {
		now, err := list(dir)
		if err != nil && was != nil {
			found = append(found, event{path: dir, kind: written})
		}
		found = append(found, compare(dir, was, now)...)
		p.mu.Lock()
		if _, still := p.seen[dir]; still {
			p.seen[dir] = now
		}
		p.mu.Unlock()
	}
	return found
}

func compare(dir string, was, now listing) []event {
	var found []event
	for name, info := range now {
		old, known := was[name]
		switch {
		case !known || !os.SameFile(old, info):
			found = append(found, event{path: filepath.Join(dir, name), kind: created})
		case !info.IsDir() && (old.Size() != info.Size() || old.Mode() != info.Mode() || !old.ModTime().Equal(info.ModTime())):
			found = append(found, event{path: filepath.Join(dir, name), kind: written})
		}
	}
	for name := range was {
		if _, still := now[name]; !still {
			found = append(found, event{path: filepath.Join(dir, name), kind: written})
		}
	}
	return found
}

// list leaves out what goes while it is listed.
func list(dir string) (listing, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	now := listing{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			now[e.Name()] = info
		}
	}
	return now, nil
}
