package egress

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// spliceBuffer is how many bytes are under way in each direction.
const spliceBuffer = 32 << 10

// tunnel is one connection on its way from a launch to its target. Each of its two
// directions has one goroutine, and run waits for both.
type tunnel struct {
	to         target
	head       int
	wait, idle time.Duration

	client, server net.Conn
	// in and out read from client and server, and may hold bytes that came early.
	in, out *bufio.Reader

	began time.Time
	// last is when a byte moved last, as the time since began.
	last     atomic.Int64
	up, down atomic.Int64
}

// run opens the tunnel to the client and carries it to its end. The error is a
// [*refusal] if what the client sent may not pass; then the client's side is still
// open.
func (t *tunnel) run() error {
	_ = t.client.SetDeadline(time.Now().Add(t.wait))
	if _, err := io.WriteString(t.client, established); err != nil {
		return err
	}
	if err := t.greet(false); err != nil {
		return err
	}
	again, err := t.asked()
	if err != nil {
		return err
	}
	return t.splice(again)
}

// greet passes a ClientHello on if it names the target.
func (t *tunnel) greet(again bool) error {
	_ = t.client.SetReadDeadline(time.Now().Add(t.wait))
	raw, name, err := readHello(t.in, t.head, again)
	if err != nil {
		return t.noHello(err)
	}
	if lower(name) != t.to.host {
		return unspoken(CodeOtherName, t.to, errors.New("the TLS greeting names "+shown(name)))
	}
	_ = t.server.SetWriteDeadline(time.Now().Add(t.wait))
	n, err := t.server.Write(raw)
	t.moved(&t.up, n)
	return err
}

// noHello sorts the errors of a greeting; those of a client that left are nobody's
// concern.
func (t *tunnel) noHello(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return unspoken(CodeHelloTimeout, t.to, err)
	case errors.Is(err, errNotTLS):
		return unspoken(CodeNotTLS, t.to, err)
	case errors.Is(err, errNoName):
		return unspoken(CodeNoName, t.to, err)
	case errors.Is(err, errHello), errors.Is(err, errLarge):
		return unspoken(CodeHello, t.to, err)
	}
	return err
}

// alert is what a client that speaks TLS is told when its greeting may not pass (RFC
// 8446, 6.2), so that it prints more than that the connection broke.
func (r *refusal) alert() []byte {
	const unrecognizedName, decodeError = 112, 50
	alert := []byte{recordAlert, 3, 3, 0, 2, 2, unrecognizedName}
	switch r.code {
	case CodeOtherName, CodeNoName:
		return alert
	case CodeHello:
		alert[len(alert)-1] = decodeError
		return alert
	}
	return nil
}

// part ends the tunnel with a refusal.
func (t *tunnel) part(last []byte) {
	_ = t.server.Close()
	if len(last) > 0 {
		part(t.client, last, t.wait, t.head)
	}
}

// asked reports whether the server's first message is one that asks for a second
// hello. It takes nothing from what the server sent but alerts, which it passes on.
func (t *tunnel) asked() (bool, error) {
	_ = t.server.SetReadDeadline(time.Now().Add(t.wait))
	rec, err := t.look()
	for passed := 0; err == nil && rec.kind() == recordAlert && passed < t.head; rec, err = t.look() {
		alert, err := readRecord(t.out, t.head)
		if err != nil {
			return false, err
		}
		_ = t.client.SetWriteDeadline(time.Now().Add(t.wait))
		n, err := t.client.Write(alert)
		t.moved(&t.down, n)
		if err != nil {
			return false, err
		}
		passed += n
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false, silentServer(t.to, err)
	}
	// The splice meets any other error again, after the bytes that came before it.
	return err == nil && rec.asksAgain(), nil
}

// look peeks at the next record of the server: its head and as much of its body as
// tells a request for a second hello, or all of a shorter one.
func (t *tunnel) look() (record, error) {
	head, err := t.out.Peek(recordHead)
	if err != nil || head[0] != recordHandshake {
		return head, err
	}
	size := int(binary.BigEndian.Uint16(head[3:]))
	return t.out.Peek(recordHead + min(size, messageHead+2+len(retryRandom)))
}

// splice carries both directions to their ends, each of which may come first. An error
// in one ends both.
func (t *tunnel) splice(again bool) error {
	_ = t.client.SetDeadline(time.Time{})
	_ = t.server.SetDeadline(time.Time{})
	var wg sync.WaitGroup
	var downErr error
	wg.Go(func() {
		if downErr = t.pump(t.client, t.server, t.out, &t.down); downErr != nil {
			_ = t.client.Close()
			_ = t.server.Close()
		}
	})
	var err error
	if again {
		err = t.greet(true)
	}
	if err == nil {
		err = t.pump(t.server, t.client, t.in, &t.up)
	}
	if err != nil {
		_ = t.server.Close()
		if _, refused := errors.AsType[*refusal](err); !refused {
			_ = t.client.Close()
		}
	}
	wg.Wait()
	if err == nil || errors.Is(err, net.ErrClosed) && downErr != nil {
		return downErr
	}
	return err
}

// pump copies one direction until it ends, and then ends it on the other side too. It
// gives up when no byte has moved either way for idle.
func (t *tunnel) pump(dst, src net.Conn, from io.Reader, count *atomic.Int64) error {
	buf := make([]byte, spliceBuffer)
	_ = src.SetReadDeadline(time.Now().Add(t.idle))
	for {
		n, err := from.Read(buf)
		if n > 0 {
			t.moved(count, 0)
			_ = dst.SetWriteDeadline(time.Now().Add(t.idle))
			written, err := dst.Write(buf[:n])
			t.moved(count, written)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return idle(t.to)
			}
			if err != nil {
				return err
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return closeWrite(dst)
		case errors.Is(err, os.ErrDeadlineExceeded):
			left := t.idle - t.silence()
			if left <= 0 {
				return idle(t.to)
			}
			_ = src.SetReadDeadline(time.Now().Add(left))
		default:
			return err
		}
	}
}

// moved notes that n bytes went through.
func (t *tunnel) moved(count *atomic.Int64, n int) {
	count.Add(int64(n))
	t.last.Store(int64(time.Since(t.began)))
}

// silence is the time since a byte moved in either direction.
func (t *tunnel) silence() time.Duration {
	return time.Since(t.began) - time.Duration(t.last.Load())
}
