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
		{`[{"type":"file","file":{"file_id":"file-1","data":1}}]`, ""},
		{`[{"type":"image_url","image_url":{"url":"DATA:image/PNG;base64,aGk","detail":"low"}}]`, `"" image/png 2 "hi"`},
		{`[{"type":"image_url","image_url":"data:image/png;base64,a-_k\n"}]`, `"" image/png 3 "k\xef\xe4"`},
		{`[{"type":"image_url","image_url":{"url":"https://example.com/data,x"}}]`, ""},
		{`[{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}]`, `"" audio/wav 2 "hi"`},
		{`[{"type":"file","file":{"filename":"t","file_data":"data:text/plain;charset=utf-8,a%20b"}}]`, `"t" text/plain 5 "a b"`},
		{`[{"type":"file","file":{"filename":"t","file_data":"data:;base64,###"}}]`, `"t"  2 error`},
		{`[{"type":"file","file":{"filename":"t","file_data":""}}]`, ""},
		{`[{"type":"file","file":null},{"type":"data"},7]`, ""},
	}
	for _, tt := range tests {
		m := llm.Message{Raw: llm.Raw{Dialect: llm.OpenAIChat, Bytes: []byte(`{"role":"user","content":` + tt.content + `}`)}}
		var got []string
		for _, a := range Attachments(m) {
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

// FuzzAttachments: whatever a client sends, what is decoded is no longer than told.
func FuzzAttachments(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"file","file":{"filename":"a","file_data":"data:a;base64,aGk="}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, a := range Attachments(llm.Message{Raw: llm.Raw{Dialect: llm.OpenAIChat, Bytes: raw}}) {
			if data, err := a.Data(); err == nil && int64(len(data)) > a.Size {
				t.Errorf("%d bytes, more than the %d told", len(data), a.Size)
			}
		}
	})
}
