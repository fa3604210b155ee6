package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metier-run/metier/internal/llm"
)

func TestAttachments(t *testing.T) {
	tests := []struct{ content, want string }{
		{`"data"`, ""},
		{`[{"type":"text","text":"data:text/plain;base64,aGk="}]`, ""},
		{`[{"type":"file","file":{"filename":"a b.csv","file_data":"data:text/csv;base64,YSxi"}}]`, `"a b.csv" text/csv 3 "a,b"`},
		{`[{"type":"file","file":{"filename":"a.csv","file_data":"YSxi"}}]`, `"a.csv"  3 "a,b"`},
		{`[{"type":"file","file":{"file_id":"file-1","data":1}}]`, `""  only its id was sent, and not the file`},
		{`[{"type":"file","file":{"file_id":"file-1","filename":"a.pdf"}}]`, `"a.pdf"  only its id was sent, and not the file`},
		{`[{"type":"image_url","image_url":{"url":"DATA:image/PNG;base64,aGk","detail":"low"}}]`, `"" image/png 2 "hi"`},
		{`[{"type":"image_url","image_url":"data:image/png;base64,a-_k\n"}]`, `"" image/png 3 "k\xef\xe4"`},
		{`[{"type":"image_url","image_url":{"url":"https://example.com/data,x"}}]`, `"" image only a link was sent, and not the file`},
		{`[{"type":"image_url","image_url":"https://example.com/x"}]`, `"" image only a link was sent, and not the file`},
		{`[{"type":"image_url","image_url":{"detail":"low"}}]`, `"" image nothing was sent of it`},
		{`[{"type":"image_url","image_url":{"url":7}}]`, `"" image nothing was sent of it`},
		{`[{"type":"image_url","image_url":{"url":"data:image/png;base64,"}}]`, `"" image/png nothing was sent of it`},
		{`[{"type":"image_url","image_url":{"url":"data:image/png;base64"}}]`, `"" image/png what was sent of it cannot be decoded`},
		{`[{"type":"image_url","image_url":{"url":"aGk="}}]`, `"" image 2 "hi"`},
		{`[{"type":"image_url","image_url":{"url":"blob:x"}}]`, `"" image only a link was sent, and not the file`},
		{`[{"type":"file","file":{"filename":"a.pdf"}}]`, `"a.pdf"  nothing was sent of it`},
		{`[{"type":"file","file":{"filename":"a.pdf","file_data":7}}]`, `"a.pdf"  nothing was sent of it`},
		{`[{"type":"file","file":{"filename":"a.pdf","file_data":"HTTPS://files.example/a,b.pdf"}}]`, `"a.pdf"  only a link was sent, and not the file`},
		{`[{"type":"file","file":{"filename":"a.pdf","file_data":"data:"}}]`, `"a.pdf"  what was sent of it cannot be decoded`},
		{`[{"type":"input_audio","input_audio":{"format":"wav"}}]`, `"" audio/wav nothing was sent of it`},
		{`[{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}]`, `"" audio/wav 2 "hi"`},
		{`[{"type":"file","file":{"filename":"t","file_data":"data:text/plain;charset=utf-8,a%20b"}}]`, `"t" text/plain 5 "a b"`},
		{`[{"type":"file","file":{"filename":"t","file_data":"data:;base64,###"}}]`, `"t"  what was sent of it cannot be decoded`},
		{`[{"type":"file","file":{"filename":"t","file_data":"data:;base64,aGk=aGk="}}]`, `"t"  what was sent of it cannot be decoded`},
		{`[{"type":"file","file":{"filename":"t","file_data":"data:;base64,aGkgd"}}]`, `"t"  what was sent of it cannot be decoded`},
		{`[{"type":"file","file":{"filename":"t","file_data":"data:text/plain,100%"}}]`, `"t" text/plain what was sent of it cannot be decoded`},
		{`[{"type":"file","file":{"filename":"t","file_data":"data:;base64,aGk= \n"}}]`, `"t"  2 "hi"`},
		{`[{"type":"file","file":{"filename":"t","file_data":"data:text/csv;base64,"}}]`, `"t" text/csv 0 ""`},
		{`[{"type":"file","file":{"filename":"t","file_data":"data:;base64,aGk=="}}]`, `"t"  what was sent of it cannot be decoded`},
		{`[{"type":"file","file":{"filename":"t","file_data":"data:;base64,aG k"}}]`, `"t"  2 "hi"`},
		{`[{"type":"file","file":{"filename":"t","file_data":""}}]`, `"t"  nothing was sent of it`},
		{`[{"type":"file","file":{"filename":"t","file_data":"","file_id":"file-1"}}]`, `"t"  nothing was sent of it`},
		{`[{"type":"file","file":{"filename":"t","file_data":null,"file_id":"file-1"}}]`, `"t"  only its id was sent, and not the file`},
		{`[{"type":"input_audio","input_audio":{"data":"","format":"wav"}}]`, `"" audio/wav nothing was sent of it`},
		{`[{"type":"file","file":null},{"type":"data"},7]`, ""},
	}
	for _, tt := range tests {
		m := llm.Message{Raw: llm.Raw{Dialect: llm.OpenAIChat, Bytes: []byte(`{"role":"user","content":` + tt.content + `}`)}}
		var got []string
		for _, a := range Attachments(m) {
			if a.Problem != "" {
				got = append(got, fmt.Sprintf("%q %s %s", a.Name, a.MediaType, a.Problem))
				continue
			}
			text := "error"
			if data, err := a.Data(); err == nil {
				text = fmt.Sprintf("%q", data)
				if int64(len(data)) > a.Size {
					t.Errorf("%s: %d bytes, more than the %d told", tt.content, len(data), a.Size)
				}
			}
			got = append(got, fmt.Sprintf("%q %s %d %s", a.Name, a.MediaType, a.Size, text))
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s\n%s", tt.content, diff)
		}
	}
}

// FuzzAttachments: whatever a client sends, what has no problem can be decoded, and is as
// long as told.
func FuzzAttachments(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"file","file":{"filename":"a","file_data":"data:a;base64,aGk="}}]}`))
	f.Add([]byte(`{"content":[{"type":"file","file":{"filename":"a","file_data":"data:a,%61"}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, a := range Attachments(llm.Message{Raw: llm.Raw{Dialect: llm.OpenAIChat, Bytes: raw}}) {
			if a.Problem != "" {
				continue
			}
			if data, err := a.Data(); err != nil || int64(len(data)) > a.Size {
				t.Errorf("%d bytes of the %d told, %v", len(data), a.Size, err)
			}
		}
	})
}

// FuzzScanBase64: the look agrees with the decoder.
func FuzzScanBase64(f *testing.F) {
	for _, text := range []string{"", "=", "aGk=", "a", "aGk=aGk=", "a-_k\n", "====", " a G k ", "aGkg\r\naGk", "#", "aGk==", "aG==k", "aGkg=", "a==="} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		size, ok := llm.ScanBase64(text)
		data, err := llm.DecodeBase64(text)
		if ok != (err == nil) || ok && size != int64(len(data)) {
			t.Errorf("%q: the look says %d, %v, and the decoder %d, %v", text, size, ok, len(data), err)
		}
	})
}
