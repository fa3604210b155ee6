package captures

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/metier-run/metier/internal/wire"
)

// request is one that a client has sent.
type request struct {
	name    string
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    jsontext.Value    `json:"body"`
}

// dialect is which door a request is for; empty for what is none of ours.
func (r request) dialect() string {
	path, _, _ := strings.Cut(r.URL, "?")
	switch {
	case r.Method != http.MethodPost:
		return ""
	case strings.HasSuffix(path, "/v1/chat/completions"):
		return "openai"
	case strings.HasSuffix(path, "/v1/responses"):
		return "responses"
	case strings.HasSuffix(path, "/v1/messages"):
		return "anthropic"
	case strings.HasSuffix(path, "/api/chat"):
		return "ollama"
	}
	return ""
}

// requests are our own and those of METIER_CAPTURES.
func requests(t *testing.T) []request {
	t.Helper()
	var all []request
	for _, dir := range []string{"testdata", os.Getenv("METIER_CAPTURES")} {
		if dir == "" {
			continue
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no requests: %v", dir, err)
		}
		for _, file := range files {
			all = append(all, read(t, file)...)
		}
	}
	return all
}

func read(t *testing.T, file string) []request {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Requests []request `json:"requests"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var tools jsontext.Value
	var found []request
	for i, r := range c.Requests {
		if r.dialect() == "" {
			continue
		}
		// A capture names a list of tools that it has shown before.
		switch list := wire.Member(r.Body, "tools"); list.Kind() {
		case '[':
			tools = list
		case '"':
			r.Body = wire.Set(r.Body, "tools", tools)
		}
		r.name = fmt.Sprintf("%s #%d", filepath.Base(file), i+1)
		found = append(found, r)
	}
	return found
}

// TestCaptures sends each request to an upstream of its own dialect, where there is one,
// and to one that speaks Chat Completions, each with skills and without.
func TestCaptures(t *testing.T) {
	seen := map[string]int{}
	all := requests(t)
	for _, skills := range []bool{false, true} {
		for _, kind := range []string{"openai", "anthropic", "ollama"} {
			h := open(t, kind, skills)
			for _, r := range all {
				own := r.dialect() == kind
				if !own && kind != "openai" {
					continue
				}
				seen[r.dialect()]++
				t.Run(fmt.Sprintf("%s to %s, skills %v", r.name, kind, skills), func(t *testing.T) {
					got := h.send(t, r)
					if code := r.refusal(); code != "" {
						got.refused(t, code)
						return
					}
					if got.status != http.StatusOK {
						t.Fatalf("%d %s", got.status, got.answer)
					}
					if own {
						same(t, r, got, skills)
						return
					}
					carried(t, r, got)
				})
			}
		}
	}
	for _, d := range []string{"openai", "responses", "anthropic", "ollama"} {
		if seen[d] == 0 {
			t.Errorf("no request for %s was sent", d)
		}
	}
}

// refusal is what a request gets that goes on from an answer which nobody here has.
func (r request) refusal() string {
	switch {
	case !wire.IsNull(wire.Member(r.Body, "previous_response_id")):
		return "previous_response_not_found"
	case !wire.IsNull(wire.Member(r.Body, "thread")):
		return "thread_unsupported_request"
	}
	return ""
}

// hosts reports whether the host may add to a member; what was there stays in front.
func hosts(member string) bool {
	return slices.Contains([]string{"system", "tools", "messages"}, member)
}

// same holds that a request arrives as it was sent, in its own dialect.
func same(t *testing.T, r request, got outcome, skills bool) {
	t.Helper()
	before, after := object(t, r.Body), object(t, got.sent)
	// The host reads streams only, and asks for the usage.
	for _, name := range []string{"stream", "stream_options"} {
		delete(before, name)
		delete(after, name)
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok && (!skills || !hosts(name)) {
			t.Errorf("the member %q was not sent by the client", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was, is := before[name], after[name]
		if skills && hosts(name) {
			if !begins(is, was) {
				t.Errorf("the member %q does not hold what the client sent:\n%s\nit sent\n%s", name, show(is), show(was))
			}
			continue
		}
		if nothing(was) && nothing(is) {
			continue
		}
		if !reflect.DeepEqual(was, is) {
			t.Errorf("the member %q is\n%s\nthe client sent\n%s", name, show(is), show(was))
		}
	}
	for _, name := range []string{"anthropic-version", "anthropic-beta"} {
		if got.header.Get(name) != r.header(name) {
			t.Errorf("the header %s is %q, the client sent %q", name, got.header.Get(name), r.header(name))
		}
	}
}

// nothing reports whether a value says no more than one that is not there.
func nothing(v any) bool {
	members, object := v.(map[string]any)
	return v == nil || object && len(members) == 0
}

// begins reports whether what was sent stands in what arrived: the items of a list in
// front, or behind one message of the host's; a system text at the beginning of a text or
// of the first item.
func begins(is, was any) bool {
	list, ok := is.([]any)
	if !ok {
		now, _ := is.(string)
		then, text := was.(string)
		return text && strings.HasPrefix(now, then)
	}
	if then, text := was.(string); text {
		return len(list) > 0 && strings.Contains(show(list[0]), strings.Trim(show(then), `"`))
	}
	then, _ := was.([]any)
	if len(then) == 0 || len(list) < len(then) {
		return len(then) == 0
	}
	if reflect.DeepEqual(list[:len(then)], then) {
		return true
	}
	// The host's block follows the words of the first message, or is a message before it.
	if len(list) > len(then) && reflect.DeepEqual(list[1:1+len(then)], then) {
		return true
	}
	return reflect.DeepEqual(list[1:len(then)], then[1:]) && opensWith(list[0], then[0])
}

func opensWith(is, was any) bool {
	now, _ := is.(map[string]any)
	then, _ := was.(map[string]any)
	for name, value := range then {
		if name != "content" && !reflect.DeepEqual(now[name], value) {
			return false
		}
	}
	return now != nil && begins(now["content"], then["content"])
}

// members are those of a dialect that have a place in Chat Completions. All others must
// be named as lost.
func members(dialect string) []string {
	return map[string][]string{
		"responses": {
			"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "store", "stream", "temperature",
			"top_p", "max_output_tokens", "text", "metadata", "user", "prompt_cache_key", "include", "truncation",
		},
		"anthropic": {
			"model", "messages", "system", "tools", "tool_choice", "max_tokens", "temperature", "top_p", "top_k", "stop_sequences", "stream",
			"thinking", "output_config",
		},
		// How long a model stays loaded is nothing about an answer.
		"ollama": {"model", "messages", "tools", "stream", "options", "think", "format", "keep_alive"},
	}[dialect]
}

// carried holds that a request arrives in Chat Completions with all its words, its calls
// and its tools, and that what does not is named.
func carried(t *testing.T, r request, got outcome) {
	t.Helper()
	body := object(t, r.Body)
	for _, name := range slices.Sorted(maps.Keys(body)) {
		known := slices.Contains(members(r.dialect()), name)
		if !known && body[name] != nil && !strings.Contains(got.warning, fmt.Sprintf("%q", name)) {
			t.Errorf("the member %q is gone, and the warning does not say so: %s", name, got.warning)
		}
	}
	words := leaves(object(t, got.sent), nil)
	all := strings.Join(words, "\n")
	for _, name := range []string{"system", "instructions", "messages", "input"} {
		for _, leaf := range leaves(body[name], unsaid(got.warning)) {
			if !strings.Contains(all, leaf) && !strings.Contains(all, strings.Trim(show(leaf), `"`)) {
				t.Errorf("the words %q did not arrive; the warning: %s", leaf, got.warning)
			}
		}
	}
	var names []string
	for _, tool := range list(object(t, got.sent)["tools"]) {
		function, _ := tool.(map[string]any)["function"].(map[string]any)
		names = append(names, fmt.Sprint(function["name"]))
	}
	for _, tool := range flat(list(body["tools"])) {
		one, _ := tool.(map[string]any)
		if function, ok := one["function"].(map[string]any); ok {
			one = function
		}
		name, _ := one["name"].(string)
		kind, _ := one["type"].(string)
		name = cmp.Or(name, kind)
		arrived := slices.ContainsFunc(names, func(sent string) bool { return strings.HasSuffix(sent, name) })
		if !arrived && !strings.Contains(got.warning, fmt.Sprintf("%q", name)) {
			t.Errorf("the tool %q did not arrive, and the warning does not say so: %s", name, got.warning)
		}
	}
}

// flat are tools, those of a group in its place: their names begin with the group's where
// the dialect has no groups.
func flat(tools []any) []any {
	var all []any
	for _, tool := range tools {
		one, _ := tool.(map[string]any)
		if one["type"] == "namespace" {
			all = append(all, list(one["tools"])...)
			continue
		}
		all = append(all, tool)
	}
	return all
}

// unsaid are the members whose words no model of another dialect gets: ids and kinds are
// no words, and what a warning names is not there.
func unsaid(warning string) []string {
	// A summary is of thoughts that are encrypted: the vendor's alone.
	skip := []string{
		"type", "role", "id", "call_id", "tool_use_id", "status", "cache_control", "signature", "summary", "encrypted_content", "media_type", "detail",
	}
	if strings.Contains(warning, "reasoning of earlier answers") {
		skip = append(skip, "thinking")
	}
	return skip
}

// leaves are the texts in a value, those of some members left out.
func leaves(v any, skip []string) []string {
	switch v := v.(type) {
	case string:
		if v != "" {
			return []string{v}
		}
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, leaves(one, skip)...)
		}
		return all
	case map[string]any:
		var all []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !slices.Contains(skip, name) {
				all = append(all, leaves(v[name], skip)...)
			}
		}
		return all
	}
	return nil
}

func list(v any) []any {
	all, _ := v.([]any)
	return all
}

func object(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return v
}

func show(v any) string {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// header is one of the client's, as it can be sent again: a capture cuts long values.
func (r request) header(name string) string {
	value, cut, ok := strings.Cut(r.Headers[name], "…")
	if ok && cut != "" {
		value = value[:max(0, strings.LastIndex(value, ","))]
	}
	return value
}

// TestFixturesHoldAll: the requests of our own have what the comparison is for.
func TestFixturesHoldAll(t *testing.T) {
	for _, want := range []string{
		"cache_control", "context_management", "tool_result", "signature", "encrypted_content", "namespace", "function_call_output",
		"tool_name", "keep_alive", base64.StdEncoding.EncodeToString([]byte("\x89PNG")),
	} {
		found := slices.ContainsFunc(requests(t), func(r request) bool { return strings.Contains(string(r.Body), want) })
		if !found {
			t.Errorf("no request has %q", want)
		}
	}
}
