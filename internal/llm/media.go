package llm

import (
	"encoding/base64"
	"strings"
)

// Media is a picture or another file inside a message.
type Media struct {
	// Type is its media type, such as "image/png", as far as the client says it.
	Type string `json:"type,omitzero"`
	// Name is what the client calls it, which may be anything.
	Name string `json:"name,omitzero"`
	// Data is what it holds, in base64 as the client wrote it: see [DecodeBase64].
	Data string `json:"data,omitzero"`
	// URL points at it, where Data is empty. Nobody here follows it.
	URL string `json:"url,omitzero"`
}

// DataURL is the file as an address that holds it, or the address that points at it.
func (m Media) DataURL() string {
	if m.Data == "" {
		return m.URL
	}
	return "data:" + m.Type + ";base64," + m.Data
}

// ParseDataURL reads an address that may hold the file itself, in base64.
func ParseDataURL(address string) Media {
	if len(address) < len("data:") || !strings.EqualFold(address[:len("data:")], "data:") {
		return Media{URL: address}
	}
	head, data, found := strings.Cut(address[len("data:"):], ",")
	if !found || !strings.HasSuffix(strings.ToLower(head), ";base64") {
		return Media{URL: address}
	}
	media, _, _ := strings.Cut(head, ";")
	return Media{Type: strings.ToLower(strings.TrimSpace(media)), Data: data}
}

// Why a file cannot be had, for [Attachment.Problem].
const (
	OnlyID     = "only its id was sent, and not the file"
	OnlyLink   = "only a link was sent, and not the file"
	BrokenData = "what was sent of it cannot be decoded"
	NoData     = "nothing was sent of it"
)

// Attachment is the file for whoever has a place for it. One that is only pointed at is
// not fetched.
func (m Media) Attachment() Attachment {
	a := Attachment{Name: m.Name, MediaType: m.Type}
	size, good := ScanBase64(m.Data)
	switch {
	case m.Data == "" && m.URL != "":
		a.Problem = OnlyLink
	case m.Data == "":
		a.Problem = NoData
	case !good:
		a.Problem = BrokenData
	default:
		a.Size = size
		a.Data = func() ([]byte, error) { return DecodeBase64(m.Data) }
	}
	return a
}

// Attachments are the files of a message whose parts are filled, in their order.
func Attachments(m Message) []Attachment {
	var found []Attachment
	for _, p := range m.Parts {
		if p.Media != nil {
			found = append(found, p.Media.Attachment())
		}
	}
	return found
}

// ScanBase64 is how many bytes [DecodeBase64] gives, and whether it can, without making
// them.
func ScanBase64(text string) (size int64, ok bool) {
	n, padding := int64(0), int64(0)
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\r', c == '\n', c == ' ':
		case c == '=':
			padding++
		case padding > 0:
			return 0, false
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '/', c == '-', c == '_':
			n++
		default:
			return 0, false
		}
	}
	return n * 3 / 4, n%4 != 1 && (padding == 0 || padding < 3 && (n+padding)%4 == 0)
}

// DecodeBase64 reads base64 as clients write it: with the alphabet of URLs as well,
// with line ends, and without padding. Padding that is there must be the one that is
// missing: with another one, something was cut off.
func DecodeBase64(text string) ([]byte, error) {
	text = strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "", " ", "").Replace(text)
	if strings.HasSuffix(text, "=") {
		return base64.StdEncoding.DecodeString(text)
	}
	return base64.RawStdEncoding.DecodeString(text)
}
