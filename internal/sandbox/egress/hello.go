package egress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The types of TLS records and messages that are told apart (RFC 8446, 4 and 5.1).
const (
	recordCipherSpec = 20
	recordAlert      = 21
	recordHandshake  = 22
	recordData       = 23

	messageClientHello = 1
	messageServerHello = 2
)

const (
	recordHead    = 5
	messageHead   = 4
	plainFragment = 1 << 14 // the most that a record in clear may hold
	// cipherFragment is the most that any record may hold (TLS 1.2; 1.3 takes less).
	cipherFragment = 1<<14 + 2048
)

// The ways in which a greeting is no greeting. A limit that is reached is errLarge.
var (
	errNotTLS = errors.New("the first bytes are not a TLS greeting")
	errLarge  = errors.New("the TLS greeting is larger than the limit egress-head")
	errNoName = errors.New("the TLS greeting names no host (SNI)")
	errHello  = errors.New("the TLS greeting is malformed")
)

func malformed(what string) error { return fmt.Errorf("%w: %s", errHello, what) }

// record is one TLS record with its head.
type record []byte

func (r record) kind() byte   { return r[0] }
func (r record) body() []byte { return r[recordHead:] }

// readRecord reads one record of at most limit bytes, its head included.
func readRecord(r io.Reader, limit int) (record, error) {
	var head [recordHead]byte
	// The first byte alone decides about what is not TLS, and a talker of another
	// protocol may send fewer than five and wait.
	if _, err := io.ReadFull(r, head[:1]); err != nil {
		return nil, err
	}
	if head[0] < recordCipherSpec || head[0] > recordData {
		return nil, errNotTLS
	}
	if _, err := io.ReadFull(r, head[1:]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint16(head[3:]))
	switch {
	case head[1] != 3 || size > cipherFragment:
		return nil, errNotTLS
	case recordHead+size > limit:
		return nil, errLarge
	}
	rec := make(record, recordHead+size)
	copy(rec, head[:])
	_, err := io.ReadFull(r, rec[recordHead:])
	return rec, err
}

// readHello reads a ClientHello, however many records carry it, and gives its bytes as
// they came and the host that it names. With again set other records may come before it,
// as they do before the hello that answers a HelloRetryRequest: the empty change of
// cipher and early data. The bytes are limit at most in all.
func readHello(r io.Reader, limit int, again bool) (raw []byte, name string, err error) {
	var message []byte
	for {
		rec, err := readRecord(r, limit-len(raw))
		if err != nil {
			return nil, "", err
		}
		raw = append(raw, rec...)
		body := rec.body()
		if rec.kind() != recordHandshake {
			if !again || len(message) > 0 {
				return nil, "", malformed("another record stands where it should be")
			}
			continue
		}
		// Empty fragments are forbidden, and what a server makes of one is anyone's
		// guess.
		if len(body) == 0 || len(body) > plainFragment {
			return nil, "", malformed("a fragment is empty or too long")
		}
		message = append(message, body...)
		whole, err := messageSize(message, limit)
		switch {
		case err != nil:
			return nil, "", err
		case len(message) > whole:
			return nil, "", malformed("something follows it in its record")
		case len(message) == whole:
			name, err := helloName(message[messageHead:])
			return raw, name, err
		}
	}
}

// messageSize is the size of the message that begins, with its head; it is more than
// there is while the head is not there.
func messageSize(begun []byte, limit int) (int, error) {
	if begun[0] != messageClientHello {
		return 0, malformed("the first message is another")
	}
	if len(begun) < messageHead {
		return messageHead, nil
	}
	size := messageHead + int(begun[1])<<16 + int(binary.BigEndian.Uint16(begun[2:]))
	if size > limit {
		return 0, errLarge
	}
	return size, nil
}

// cursor takes a message apart from its front. After a taking that fails everything
// taken is empty and ok is false.
type cursor struct {
	rest []byte
	ok   bool
}

func (c *cursor) take(n int) []byte {
	if !c.ok || n > len(c.rest) {
		c.rest, c.ok = nil, false
		return nil
	}
	taken := c.rest[:n:n]
	c.rest = c.rest[n:]
	return taken
}

// number takes a number of n bytes.
func (c *cursor) number(n int) int {
	v := 0
	for _, b := range c.take(n) {
		v = v<<8 | int(b)
	}
	return v
}

// vector takes a vector whose length stands before it, in n bytes.
func (c *cursor) vector(n int) *cursor {
	taken := c.take(c.number(n))
	return &cursor{rest: taken, ok: c.ok}
}

// helloName is the host that the body of a ClientHello names (RFC 8446, 4.1.2; RFC
// 6066, 3), as it is written there.
func helloName(body []byte) (string, error) {
	c := &cursor{rest: body, ok: true}
	if major := c.number(1); c.ok && major != 3 {
		return "", malformed("its version is unknown")
	}
	c.take(1 + 32) // minor version, random
	session, suites, methods := c.vector(1), c.vector(2), c.vector(1)
	if !c.ok || len(session.rest) > 32 || len(suites.rest) == 0 || len(suites.rest)%2 != 0 || len(methods.rest) == 0 {
		return "", malformed("it is cut short")
	}
	if len(c.rest) == 0 {
		return "", errNoName
	}
	extensions := c.vector(2)
	if !c.ok || len(c.rest) != 0 {
		return "", malformed("its extensions do not end where it does")
	}
	return extensionName(extensions)
}

// extensionName finds the name among the extensions. Each may stand once: which of two
// a server believes is not known.
func extensionName(c *cursor) (string, error) {
	seen := map[int]bool{}
	var name string
	for len(c.rest) > 0 {
		kind := c.number(2)
		data := c.vector(2)
		if !c.ok {
			return "", malformed("an extension is cut short")
		}
		if seen[kind] {
			return "", malformed("an extension stands twice")
		}
		seen[kind] = true
		if kind != 0 {
			continue
		}
		list := data.vector(2)
		if hostName := list.number(1); !list.ok || hostName != 0 {
			return "", malformed("its name is of another kind")
		}
		name = string(list.vector(2).rest)
		if !list.ok || !data.ok || len(list.rest) != 0 || len(data.rest) != 0 {
			return "", malformed("it names other than one host")
		}
	}
	if name == "" {
		return "", errNoName
	}
	return name, nil
}

// retryRandom is the random value that makes a ServerHello a HelloRetryRequest (RFC
// 8446, 4.1.3).
const retryRandom = "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91" +
	"\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c"

// asksAgain reports whether a record of a server is a HelloRetryRequest, after which the
// client sends a second hello in clear, with a name that could be another. A message is
// taken to be no retry if its random value is split between records: no server cuts
// records of less than 64 bytes (RFC 8449, 4).
func (r record) asksAgain() bool {
	b := r.body()
	const random = messageHead + 2
	return r.kind() == recordHandshake && len(b) >= random+len(retryRandom) &&
		b[0] == messageServerHello && string(b[random:random+len(retryRandom)]) == retryRandom
}
