package anthropic

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/gateway"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/llm/anthropic"
	"github.com/metier-run/metier/internal/server"
	"github.com/metier-run/metier/internal/wire"
)

// versionHeader says which version of the API a request is of.
const versionHeader = "Anthropic-Version"

// versionOf is the version that a request is read as, with a warning where that is not
// what it says. As at the vendor it must say one, but not below the door's own prefix:
// there nobody can mean another dialect.
func versionOf(r *http.Request) (version, warning string, err error) {
	switch version = strings.TrimSpace(r.Header.Get(versionHeader)); version {
	case anthropic.Version2023, anthropic.Version2026:
		return version, "", nil
	case "":
		if !below(r.URL.Path) {
			return "", "", invalid(versionHeader, fmt.Sprintf("anthropic-version: the header is required: send %s or %s, or use a base URL that ends in %s", anthropic.Version2023, anthropic.Version2026, prefix))
		}
		return anthropic.Version2023, "there is no header anthropic-version: the request is read as of " + anthropic.Version2023, nil
	}
	return anthropic.Version2026, fmt.Sprintf("the anthropic-version %.40q is not known: the request is read as of %s", version, anthropic.Version2026), nil
}

// request is a client's request as the door understands it.
type request struct {
	*anthropic.Request
	in       gateway.Request
	warnings []string
}

// decode reads a request and takes the members that are for the host.
func (d *Door) decode(r *http.Request) (*request, error) {
	version, warning, err := versionOf(r)
	if err != nil {
		return nil, err
	}
	body, err := server.ReadBody(r)
	if err != nil {
		return nil, err
	}
	req, err := anthropic.DecodeRequest(body, version, d.bounds, d.options.Gateway.Dialect() != llm.Anthropic)
	if err != nil {
		return nil, err
	}
	if err := threaded(req); err != nil {
		return nil, err
	}
	in := gateway.Request{
		Request: req.Request, Header: server.Passing(anthropic.PassHeader(r.Header), r.Header), EndUser: endUser(req),
		Expand: anthropic.Expand, Files: files,
	}
	selected, err := server.Select(req.Take, r.Header)
	if err != nil {
		return nil, err
	}
	in.Skills, in.Discovery = selected.Skills, selected.Discovery
	out := &request{Request: req, in: in}
	if warning != "" {
		out.warnings = append(out.warnings, warning)
	}
	return out, nil
}

// threaded refuses a request of a conversation that the vendor keeps. What the host adds to
// one would break it there, and another upstream has none; the vendor's clients then send the
// whole conversation.
func threaded(req *anthropic.Request) error {
	for _, m := range req.Rest {
		if m.Name == "thread" && !wire.IsNull(m.Value) {
			return &fault.Error{
				Code: fault.Invalid, Param: "thread", Detail: threadUnsupported,
				Message: `"thread" cannot be used here: send the whole conversation in "messages"`,
			}
		}
	}
	return nil
}

// threadUnsupported is the vendor's code for it, by which its clients know what to do.
const threadUnsupported = "thread_unsupported_request"

// files are those that a message holds.
func files(m llm.Message) []llm.Attachment { return llm.Attachments(anthropic.Expand(m)) }

// endUser is whom a product's request is made for, as it says itself: metadata.user_id.
// Claude Code writes the session into it; what one session's model read is remembered in
// the next one of the same user, which goes on with its conversation.
func endUser(req *anthropic.Request) string {
	for _, m := range req.Rest {
		if m.Name != "metadata" {
			continue
		}
		id, _ := wire.String(wire.Member(m.Value, "user_id"))
		return withoutSession(id)
	}
	return ""
}

// withoutSession is a user's id without the session that Claude Code adds to it, as JSON or
// in the older form user_…_account_…_session_….
func withoutSession(id string) string {
	if strings.HasPrefix(id, "{") && wire.Check([]byte(id)) == nil {
		return string(wire.Remove(jsontext.Value(id), "session_id"))
	}
	if user, _, found := strings.Cut(id, "_session_"); found && strings.HasPrefix(id, "user_") {
		return user
	}
	return id
}

// shows reports whether a client asked to see what the model thinks.
func shows(req *anthropic.Request) bool {
	for _, m := range req.Rest {
		if m.Name != "thinking" {
			continue
		}
		kind, _ := wire.String(wire.Member(m.Value, "type"))
		display, _ := wire.String(wire.Member(m.Value, "display"))
		return kind != "" && kind != "disabled" && display != "omitted"
	}
	return false
}

func invalid(param, message string) error {
	return &fault.Error{Code: fault.Invalid, Param: param, Message: message}
}
