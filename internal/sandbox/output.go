package sandbox

import (
	"fmt"
	"io"
)

// Output is what one stream of a launch said: its beginning and its end when it
// said more than is kept.
type Output struct {
	// Head is the beginning, Tail the end; Tail is empty when all was kept.
	Head, Tail []byte
	// Total counts all bytes that were written.
	Total int64
}

// Dropped is how many bytes between Head and Tail are not kept.
func (o Output) Dropped() int64 { return o.Total - int64(len(o.Head)+len(o.Tail)) }

// Text is what was kept, with a line where something was dropped. The bytes are the
// launch's own and may be anything.
func (o Output) Text() string {
	if o.Dropped() <= 0 {
		return string(o.Head) + string(o.Tail)
	}
	return fmt.Sprintf("%s\n[%d bytes dropped]\n%s", o.Head, o.Dropped(), o.Tail)
}

// chunk is how much is read at once.
const chunk = 32 << 10

// Collect reads r to its end and keeps limit bytes of it, half of them from the
// end when there are more. It never stops reading before the end, so that a
// writer is never blocked by what is dropped.
func Collect(r io.Reader, limit int64) Output {
	c := collector{limit: int(max(limit, 0))}
	buf := make([]byte, chunk)
	for {
		n, err := r.Read(buf)
		c.add(buf[:n])
		if err != nil {
			return c.output()
		}
	}
}

// collector keeps the first and the last bytes of what is added.
type collector struct {
	limit int
	total int64
	head  []byte
	ring  []byte // the last bytes beyond head, oldest at next once it is full
	next  int
}

func (c *collector) add(p []byte) {
	c.total += int64(len(p))
	if room := c.limit - c.limit/2 - len(c.head); room > 0 {
		n := min(room, len(p))
		c.head, p = append(c.head, p[:n]...), p[n:]
	}
	size := c.limit / 2
	if len(p) > size {
		p = p[len(p)-size:]
	}
	if grow := min(size-len(c.ring), len(p)); grow > 0 {
		c.ring, p = append(c.ring, p[:grow]...), p[grow:]
	}
	for len(p) > 0 {
		n := copy(c.ring[c.next:], p)
		c.next, p = (c.next+n)%size, p[n:]
	}
}

func (c *collector) output() Output {
	tail := append(append([]byte(nil), c.ring[c.next:]...), c.ring[:c.next]...)
	o := Output{Head: c.head, Total: c.total}
	if int64(len(c.head)+len(tail)) == c.total {
		o.Head = append(o.Head, tail...)
		return o
	}
	o.Tail = tail
	return o
}
