package egress

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A model reads these texts in the output of curl, pip, npm and the like. Most of those
// print only the status and, if they are kind, the phrase behind it: so the phrase is
// the whole sentence, and the body repeats it.

// Code says why something was refused, for logs and for the header X-Metier-Refused.
type Code string

// The codes. Those from CodeNotTLS on are found inside a tunnel, where no answer can be
// given: the connection is closed and the log says why.
const (
	CodeBadRequest    Code = "bad-request"       // 400: the head is not one of HTTP
	CodeHeadTooLarge  Code = "head-too-large"    // 431: the head exceeds egress-head
	CodeHeadTimeout   Code = "head-timeout"      // 408: the head took longer than egress-wait
	CodeNotConnect    Code = "not-connect"       // 405: another method, such as plain HTTP
	CodeBadHost       Code = "bad-host"          // 403: the target is no plain name with a port
	CodeLiteral       Code = "address-literal"   // 403: the target is an address, in any spelling
	CodeNotListed     Code = "host-not-listed"   // 403: the host is not on the list
	CodePortNotListed Code = "port-not-listed"   // 403: the host is, with another port
	CodePrivate       Code = "private-address"   // 403: the name leads to an address that is not public
	CodeUnresolved    Code = "host-not-found"    // 502: the name has no address, or none was found
	CodeDial          Code = "connect-failed"    // 502: no connection to the host
	CodeDialTimeout   Code = "connect-timeout"   // 502: none within egress-wait
	CodeBusy          Code = "too-many"          // 503: more connections than egress-connections
	CodeNotTLS        Code = "not-tls"           // the tunnel carries something else
	CodeHello         Code = "bad-hello"         // the TLS greeting is malformed or too large
	CodeHelloTimeout  Code = "hello-timeout"     // none within egress-wait
	CodeNoName        Code = "no-server-name"    // the TLS greeting names no host
	CodeServerTimeout Code = "server-timeout"    // the host does not answer the TLS greeting within egress-wait
	CodeIdle          Code = "idle"              // nothing moved for egress-idle
	CodeOtherName     Code = "other-server-name" // it names another than the request did
)

// refusal is an answer other than yes.
type refusal struct {
	code   Code
	status int
	// text is one line of ASCII.
	text string
	// more is a second line for the body; it may be empty.
	more string
	// cause is for the log alone.
	cause error
}

// Error is the text, and the cause if there is one.
func (r *refusal) Error() string {
	if r.cause != nil {
		return r.text + ": " + r.cause.Error()
	}
	return r.text
}

// answer is the whole response.
func (r *refusal) answer() []byte {
	body := r.text + "\n"
	if r.more != "" {
		body += r.more + "\n"
	}
	allow := ""
	if r.status == http.StatusMethodNotAllowed {
		allow = "Allow: CONNECT\r\n"
	}
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n%sX-Metier-Refused: %s\r\nConnection: close\r\n\r\n%s",
		r.status, r.text, len(body), allow, r.code, body)
}

// established opens a tunnel.
const established = "HTTP/1.1 200 Connection established\r\n\r\n"

func badHead(why string) *refusal {
	return &refusal{
		code: CodeBadRequest, status: http.StatusBadRequest,
		text: "the proxy cannot read this request, since " + why + ": send CONNECT HOST:PORT HTTP/1.1",
	}
}

func largeHead(limit int) *refusal {
	return &refusal{
		code: CodeHeadTooLarge, status: http.StatusRequestHeaderFieldsTooLarge,
		text: fmt.Sprintf("the head of this request is larger than %d bytes: send fewer headers", limit),
	}
}

func slowHead() *refusal {
	return &refusal{
		code: CodeHeadTimeout, status: http.StatusRequestTimeout,
		text: "the request to the proxy did not arrive in time: send it again",
	}
}

func notConnect() *refusal {
	return &refusal{
		code: CodeNotConnect, status: http.StatusMethodNotAllowed,
		text: "only CONNECT passes this proxy, with TLS inside: use an https:// address instead of http://",
	}
}

func badTarget(text, why string) *refusal {
	return &refusal{
		code: CodeBadHost, status: http.StatusForbidden,
		text: fmt.Sprintf("the target %s %s", shown(text), why),
	}
}

func literal(text string) *refusal {
	return &refusal{
		code: CodeLiteral, status: http.StatusForbidden,
		text: fmt.Sprintf("the target %s is an address, and addresses never pass: use the name of a host that is listed", shown(text)),
	}
}

// notListed names what is listed, so that a model need not try.
func (p *Proxy) notListed(t target) *refusal {
	more := "nothing is listed"
	if len(p.list.entries) > 0 {
		more = "listed: " + p.list.String()
	}
	if p.list.names(t.host) {
		return &refusal{
			code: CodePortNotListed, status: http.StatusForbidden, more: more,
			text: fmt.Sprintf("port %d of the host %s is not on the list %s: use the listed port, or ask the operator to add %s:%d", t.port, t.host, p.flag, t.host, t.port),
		}
	}
	return &refusal{
		code: CodeNotListed, status: http.StatusForbidden, more: more,
		text: fmt.Sprintf("host %s is not on the list %s: use a host that is listed, do without, or ask the operator to add it", t.host, p.flag),
	}
}

func unresolved(t target, cause error) *refusal {
	return &refusal{
		code: CodeUnresolved, status: http.StatusBadGateway, cause: cause,
		text: fmt.Sprintf("host %s is allowed but no address was found for it: check its spelling, or try again later", t.host),
	}
}

// private does not say which address it is: that is the business of the host's network.
func private(t target, cause error) *refusal {
	return &refusal{
		code: CodePrivate, status: http.StatusForbidden, cause: cause,
		text: fmt.Sprintf("host %s is allowed but leads to an address that is not public, and those never pass: use another host", t.host),
	}
}

func undialled(t target, cause error) *refusal {
	return &refusal{
		code: CodeDial, status: http.StatusBadGateway, cause: cause,
		text: fmt.Sprintf("host %s is allowed but does not accept connections on port %d: check the port, or try again later", t.host, t.port),
	}
}

func lateDial(t target, wait time.Duration, cause error) *refusal {
	return &refusal{
		code: CodeDialTimeout, status: http.StatusBadGateway, cause: cause,
		text: fmt.Sprintf("host %s is allowed but did not answer on port %d within %s: try again later", t.host, t.port, wait),
	}
}

func busy(atOnce int) *refusal {
	return &refusal{
		code: CodeBusy, status: http.StatusServiceUnavailable,
		text: fmt.Sprintf("more than %d connections are open through this proxy: use fewer at once, then try again", atOnce),
	}
}

// shown is a target fit for a line of ASCII: quoted, and no longer than names get.
func shown(text string) string {
	cut := ""
	if len(text) > maxName {
		text, cut = text[:maxName], "..."
	}
	return strconv.QuoteToASCII(text) + cut
}

// What goes wrong inside a tunnel is read in the log alone.

// unspoken refuses what a client sent in a tunnel.
func unspoken(code Code, t target, cause error) *refusal {
	return &refusal{
		code: code, cause: cause,
		text: fmt.Sprintf("closed the tunnel to %s, in which only TLS passes that names this host", t),
	}
}

func silentServer(t target, cause error) *refusal {
	return &refusal{
		code: CodeServerTimeout, cause: cause,
		text: fmt.Sprintf("closed the tunnel to %s, which did not answer the TLS greeting within egress-wait", t),
	}
}

func idle(t target) *refusal {
	return &refusal{code: CodeIdle, text: fmt.Sprintf("closed the tunnel to %s, in which nothing moved for egress-idle", t)}
}
