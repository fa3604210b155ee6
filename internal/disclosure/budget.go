package disclosure

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The shape of the block (seed 1, "The budget"; B1 2.6). These are part of the
// rendering and not settings: another value would be another block.
const (
	bytesPerToken  = 4
	descriptionCap = 1024 // code points, the specification's own ceiling
	catalogEntries = 96
	indexEntries   = 40
	shortest       = 160

	costAnnounced = 32 // tokens around a description with its call
	costInlined   = 64
	costDeferred  = 48
	costListed    = 16
)

// ladder is the lengths of a catalog's descriptions, in the order of trial.
func ladder() []int { return []int{descriptionCap, 512, 320, 240, shortest} }

// metadataBudget is the tokens for a block without bodies: 2 % of the window.
func metadataBudget(context int) int {
	if context <= 0 {
		return 2000
	}
	return min(max(context/50, 1024), 10000)
}

// inlineBudget is the tokens for a block with bodies: a quarter of the window.
func inlineBudget(context int) int {
	if context <= 0 {
		return 16000
	}
	return min(max(context/4, 1024), 48000)
}

// bodyRoom is the tokens that one body may take of a block's budget.
func bodyRoom(budget int) int { return max(budget*3/4, 512) }

// Trim cuts a text to n code points, three dots included, at the end of a word
// where there is one.
func Trim(s string, n int) string {
	const dots = "..."
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	room := max(n-len(dots), 0)
	end := 0
	for i := range s {
		if room == 0 {
			end = i
			break
		}
		room--
	}
	if next, _ := utf8.DecodeRuneInString(s[end:]); !unicode.IsSpace(next) {
		if at := strings.LastIndexFunc(s[:end], unicode.IsSpace); at > 0 {
			end = at
		}
	}
	return strings.TrimRightFunc(s[:end], unicode.IsSpace) + dots
}

// cutBody is the longest start of a body that has at most n bytes and ends with
// a line, or with a character if its first line is too long for that.
func cutBody(body string, n int) string {
	if len(body) <= n {
		return body
	}
	for n > 0 && !utf8.RuneStart(body[n]) {
		n--
	}
	if at := strings.LastIndexByte(body[:n], '\n'); at > 0 {
		return body[:at]
	}
	return body[:n]
}
