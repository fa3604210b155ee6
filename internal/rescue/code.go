package rescue

// code follows which prose is code in Markdown: a mark that is quoted there is
// spoken of, not meant.
type code struct {
	fence int  // the backticks that opened the fence; 0 outside
	tick  int  // those that opened inline code
	run   int  // those that are being read
	mid   bool // the line has more than white space
}

func (k *code) inside() bool { return k.fence > 0 || k.tick > 0 }

// advance goes on over text.
func (k *code) advance(text string) {
	for i := range len(text) {
		k.next(text[i])
	}
}

func (k *code) next(b byte) {
	if b == '`' {
		k.run++
		return
	}
	if k.run > 0 {
		k.end(b)
	}
	switch b {
	case '\n':
		// Inline code that goes on in the next line is rarer than a lone backtick.
		k.mid, k.tick = false, 0
	case ' ', '\t', '\r':
	default:
		k.mid = true
	}
}

// end takes a run of backticks that b follows.
func (k *code) end(b byte) {
	n := k.run
	k.run = 0
	switch {
	case k.fence > 0:
		if !k.mid && n >= k.fence && isSpace(b) {
			k.fence = 0
		}
	case k.tick > 0:
		if n == k.tick {
			k.tick = 0
		}
	case n >= 3 && !k.mid:
		k.fence = n
	default:
		k.tick = n
	}
	k.mid = true
}

// scan goes over prose up to where a mark may begin, and returns that place.
func (f *Filter) scan(text string) int {
	m := f.parser.marks
	for i := range len(text) {
		b := text[i]
		if m.first[b] {
			if f.code.run > 0 {
				f.code.end(b)
			}
			if !f.code.inside() && (i+1 == len(text) || m.second[text[i+1]]) {
				return i
			}
		}
		f.code.next(b)
	}
	return len(text)
}
