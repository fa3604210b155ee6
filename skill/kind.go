package skill

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"
)

// headSize is how many bytes at the start of a file tell text from binary: what
// a file system reads in one go.
const headSize = 4096

// isText says whether a file starts with UTF-8 without NUL bytes. whole is false
// when the file goes on, so that the last character may be cut.
func isText(head []byte, whole bool) bool {
	if !whole {
		for i := 1; i < utf8.UTFMax && i <= len(head); i++ {
			if utf8.RuneStart(head[len(head)-i]) {
				if !utf8.FullRune(head[len(head)-i:]) {
					head = head[:len(head)-i]
				}
				break
			}
		}
	}
	return utf8.Valid(head) && bytes.IndexByte(head, 0) < 0
}

// kind follows the order of the constants.
func kind(f File) Kind {
	top, _, nested := strings.Cut(f.Path, "/")
	if !nested {
		top = ""
	}
	ext := strings.ToLower(path.Ext(f.Path))
	switch {
	case f.Path == ManifestFile:
		return KindManifest
	case top == "scripts" || executable(ext):
		return KindScript
	case top == "references" || top == "reference":
		return KindReference
	case top == "assets":
		return KindAsset
	case ext == ".md" || ext == ".markdown":
		return KindReference
	case !f.Text:
		return KindAsset
	}
	return KindOther
}

func executable(ext string) bool {
	switch ext {
	case ".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".bash", ".zsh", ".rb", ".pl", ".php", ".lua", ".ps1", ".bat", ".cmd":
		return true
	}
	return false
}
