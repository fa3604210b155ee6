package egress

import (
	"bufio"
	"errors"
	"os"
	"strings"
)

// target is a host and port that a request asked for: a plain name in lower case.
type target struct {
	host string
	port int
}

// readHead reads one request's head, up to and with its empty line, and nothing
// behind it. It fails with a [*refusal], or with the error of a connection that broke.
func readHead(r *bufio.Reader, limit int) (string, error) {
	head := make([]byte, 0, min(limit, r.Size()))
	line := 0 // bytes of the line so far
	for {
		c, err := r.ReadByte()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return "", slowHead()
		case err != nil:
			return "", err
		}
		after := len(head) > 0 && head[len(head)-1] == '\r'
		if after != (c == '\n') || c < ' ' && c != '\t' && c != '\r' && c != '\n' || c == 0x7f {
			return "", badHead("it has a control character, or a line that does not end in CR LF")
		}
		head = append(head, c)
		switch {
		case c == '\n' && line == 0:
			return string(head), nil
		case c == '\n':
			line = 0
		case c != '\r':
			line++
		}
		if len(head) >= limit {
			return "", largeHead(limit)
		}
	}
}

// parseHead finds the target of a whole head. The standard library's reader is kinder
// than a guard may be: it takes bare line feeds and spaces in many places.
func parseHead(head string) (target, *refusal) {
	line, fields, _ := strings.Cut(strings.TrimSuffix(head, "\r\n"), "\r\n")
	parts := strings.Split(line, " ")
	if len(parts) != 3 || !isToken(parts[0]) || parts[2] != "HTTP/1.1" && parts[2] != "HTTP/1.0" {
		return target{}, badHead("its first line is not CONNECT HOST:PORT HTTP/1.1")
	}
	if parts[0] != "CONNECT" {
		return target{}, notConnect()
	}
	for field := range strings.SplitSeq(strings.TrimSuffix(fields, "\r\n"), "\r\n") {
		if r := checkField(field); r != nil {
			return target{}, r
		}
	}
	return parseTarget(parts[1])
}

// checkField reads a line of the head only to know that it is one, and that no body is
// announced: what follows the head is the tunnel's.
func checkField(field string) *refusal {
	if field == "" {
		return nil // a head without fields
	}
	name, value, found := strings.Cut(field, ":")
	switch {
	case !found || !isToken(name):
		return badHead("one of its lines is not NAME: VALUE")
	case strings.EqualFold(name, "Transfer-Encoding"), strings.EqualFold(name, "Content-Length") && strings.Trim(value, " \t") != "0":
		return badHead("a CONNECT has no body")
	}
	return nil
}

// parseTarget reads HOST:PORT.
func parseTarget(text string) (target, *refusal) {
	host, digits, found := cutLast(text, ':')
	if !found {
		return target{}, badTarget(text, "has no port: send HOST:PORT")
	}
	switch {
	case strings.ContainsAny(host, "[]"):
		return target{}, literal(text)
	case strings.ContainsAny(host, "@/%\\?#"):
		return target{}, badTarget(text, "holds more than a host and a port: send HOST:PORT alone")
	case strings.Contains(host, ":"):
		return target{}, literal(text)
	}
	port, ok := parsePort(digits)
	if !ok {
		return target{}, badTarget(text, "has no valid port: send a number from 1 to 65535")
	}
	host = lower(host)
	if host != "" && endsInNumber(strings.TrimSuffix(host, ".")) {
		return target{}, literal(text)
	}
	if why := nameFault(host); why != "" {
		return target{}, badTarget(text, why)
	}
	return target{host: host, port: port}, nil
}

func cutLast(s string, sep byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// isToken is the token of RFC 9110, 5.6.2.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}
