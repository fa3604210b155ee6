package patch

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// operation is an operation as it was spelled.
type operation struct {
	at         int // which one it is, from 1
	kind       Kind
	path, move string
	diff       string
	hasDiff    bool
	content    string
	hasContent bool
}

// json reads the operations of B1 12.3, or an envelope inside of JSON.
func (r *reader) json(body string, l Limits) *Error {
	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		return refuse(0, sayJSON, err)
	}
	if text, ok := wrapped(value); ok {
		return r.envelopes(text)
	}
	list, ok := operations(value)
	if !ok {
		return refuse(0, sayJSONShape)
	}
	for i, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return refuse(0, sayJSONShape)
		}
		o, err := spelled(i+1, fields)
		if err != nil {
			return err.about(o.path, nil)
		}
		if err := r.operation(o, l); err != nil {
			return err.about(o.path, nil)
		}
	}
	return nil
}

// wrapped is the envelope that a JSON value holds and nothing else like it: the
// string itself, or one in an object or an array, such as a call's arguments.
func wrapped(value any) (string, bool) {
	if text, ok := value.(string); ok {
		return text, true
	}
	if fields, ok := value.(map[string]any); ok && (fields["type"] != nil || fields["operation"] != nil || fields["operations"] != nil) {
		return "", false
	}
	found := envelopesIn(value)
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}

// envelopesIn are the strings of a JSON value that hold an envelope.
func envelopesIn(value any) []string {
	var found []string
	switch v := value.(type) {
	case string:
		if _, ok := next(sentLines(v), 0, beginLine); ok {
			return []string{v}
		}
	case []any:
		for _, item := range v {
			if fields, ok := item.(map[string]any); ok && fields["type"] != nil {
				continue // an operation
			}
			found = append(found, envelopesIn(item)...)
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			found = append(found, envelopesIn(v[key])...)
		}
	}
	return found
}

// operations are the items of an array, of "operations", or a single one.
func operations(value any) ([]any, bool) {
	switch v := value.(type) {
	case []any:
		return v, len(v) > 0
	case map[string]any:
		for _, key := range []string{"operations", "operation"} {
			if inner, ok := v[key]; ok {
				return operations(inner)
			}
		}
		_, typed := v["type"]
		return []any{v}, typed
	}
	return nil, false
}

// spelled reads the fields of an operation. A key that could mean something and
// is not known is refused, so that nothing of the patch is lost in silence.
func spelled(at int, fields map[string]any) (operation, *Error) {
	o := operation{at: at}
	seen := map[string]string{} // what was given, by the name it was given
	for _, key := range sortedKeys(fields) {
		role := roleOf(key)
		switch {
		case role == "ignored":
			continue
		case role == "":
			return o, refuse(0, sayJSONKey, at, key)
		case fields[key] == nil:
			continue
		case seen[role] != "":
			return o, refuse(0, sayJSONTwice, at, seen[role], key)
		}
		text, ok := stringOf(fields[key])
		if !ok {
			return o, refuse(0, sayJSONValue, at, key)
		}
		seen[role] = key
		if err := o.set(role, text); err != nil {
			return o, err
		}
	}
	if seen["diff"] != "" && seen["content"] != "" {
		return o, refuse(0, sayJSONTwice, at, seen["diff"], seen["content"])
	}
	if seen["path"] == "" {
		return o, refuse(0, sayJSONNoPath, at)
	}
	if seen["type"] == "" {
		return o, refuse(0, sayJSONType, at, "")
	}
	return o, nil
}

func (o *operation) set(role, text string) *Error {
	switch role {
	case "type":
		switch strings.TrimSuffix(strings.ToLower(strings.TrimFunc(text, space)), "_file") {
		case "create", "add":
			o.kind = Add
		case "update":
			o.kind = Update
		case "delete":
			o.kind = Delete
		default:
			return refuse(0, sayJSONType, o.at, text)
		}
	case "path":
		o.path = text
	case "move":
		o.move = text
	case "diff":
		o.diff, o.hasDiff = text, true
	case "content":
		o.content, o.hasContent = text, true
	}
	return nil
}

// roleOf sorts the keys of an operation (B1 12.3); "" is none that is known.
func roleOf(key string) string {
	switch key {
	case "type":
		return "type"
	case "path", "file_path", "file", "filename":
		return "path"
	case "move_to":
		return "move"
	case "diff":
		return "diff"
	case "content", "text", "body", "contents":
		return "content"
	case "id", "call_id", "status", "explanation", "description", "reason", "comment":
		return "ignored"
	}
	return ""
}

// stringOf is a string, or the lines of an array of strings.
func stringOf(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case []any:
		lines := make([]string, len(v))
		for i, item := range v {
			s, ok := item.(string)
			if !ok {
				return "", false
			}
			lines[i] = strings.TrimSuffix(s, "\n")
		}
		return strings.Join(lines, "\n"), true
	}
	return "", false
}

func sortedKeys(fields map[string]any) []string {
	var keys []string
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// operation makes a section of an operation.
func (r *reader) operation(o operation, l Limits) *Error {
	path, err := r.file(0, strings.TrimFunc(o.path, space))
	if err != nil {
		return err
	}
	s := section{kind: o.kind, path: path}
	if o.move != "" {
		if o.kind != Update {
			return refuse(0, sayJSONMove, o.at)
		}
		if s.move, err = r.file(0, strings.TrimFunc(o.move, space)); err != nil {
			return err
		}
	}
	if o.kind == Delete {
		if strings.TrimFunc(o.diff+o.content, space) != "" {
			return refuse(0, sayJSONDelete, o.at)
		}
		r.sections = append(r.sections, s)
		return nil
	}
	switch {
	case o.hasContent:
		err = o.whole(&s)
	case o.hasDiff:
		return r.diff(&s, o, l)
	case s.move == "":
		err = refuse(0, sayJSONNoBody, o.at)
	}
	if err == nil {
		r.sections = append(r.sections, s)
	}
	return err
}

// whole reads a file's whole content. What is a diff under the wrong name is
// refused.
func (o operation) whole(s *section) *Error {
	lines := splitLines(o.content)
	if isDiff(lines) {
		return refuse(0, sayJSONIsDiff, o.at)
	}
	for i, l := range lines {
		if err := placeholder(i+1, l.s, nil); err != nil {
			return err
		}
	}
	s.body, s.whole = ended(lines, false), s.kind == Update
	return numbered(0, s.body)
}

// isDiff says whether all lines could be those of a hunk, and some change one.
func isDiff(lines []fileLine) bool {
	changes := 0
	for _, l := range lines {
		switch {
		case l.s == "" || l.s[0] == ' ':
		case l.s[0] == '+' || l.s[0] == '-':
			changes++
		case strings.HasPrefix(l.s, "@@"), strings.HasPrefix(l.s, "***"):
			changes++
		default:
			return false
		}
	}
	return changes > 0
}

// diff reads hunks, or the + lines of a new file, without an envelope. A whole
// envelope in their place is read if it does the same to the same file.
func (r *reader) diff(s *section, o operation, l Limits) *Error {
	text := unfence(o.diff)
	lines := sentLines(text)
	if _, enveloped := next(lines, 0, beginLine); enveloped {
		return r.inner(s, o, text, l)
	}
	inner := reader{clean: r.clean, lines: lines}
	var err *Error
	if s.kind == Add {
		if err = inner.add(s, inner.take()); err == nil && inner.at < len(inner.lines) {
			stray := inner.lines[inner.at]
			err = refuse(stray.no, sayUnknownMark, quoted(stray.s))
		}
	} else {
		err = inner.update(s)
		if stray, ok := inner.peek(); err == nil && ok {
			err = refuse(stray.no, sayUnknownMark, quoted(stray.s))
		}
	}
	if err != nil {
		return err.about(s.path, nil)
	}
	for _, n := range inner.notes {
		r.note(n)
	}
	r.sections = append(r.sections, *s)
	return nil
}

func (r *reader) inner(s *section, o operation, text string, l Limits) *Error {
	p, err := parse(text, r.clean, l)
	if err != nil {
		return err
	}
	if len(p.sections) != 1 || p.sections[0].kind != s.kind || p.sections[0].path != s.path || s.move != "" && p.sections[0].move != s.move {
		return refuse(0, sayJSONEnvelope, o.at)
	}
	for _, n := range p.notes {
		r.note(n)
	}
	r.sections = append(r.sections, p.sections[0])
	return nil
}
