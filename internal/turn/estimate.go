package turn

import (
	"math"

	"github.com/metier-run/metier/internal/llm"
)

// imageTokens is what a picture counts for at most, whatever its bytes: vendors make it
// smaller before a model sees it, and say about 1,600 tokens of the largest.
const imageTokens = 1600

// Estimate is how many tokens a request sends, about, as a turn reckons for as long as no
// upstream has counted. expand fills the parts of a message that may hold only its wire
// form.
func Estimate(r *llm.Request, expand func(llm.Message) llm.Message) int64 {
	size, pictures := 0, 0
	for _, m := range r.Messages {
		own := messageSize(m)
		for _, p := range expand(m).Parts {
			if p.Kind != llm.Image || p.Media == nil {
				continue
			}
			pictures += imageTokens
			if len(m.Raw.Bytes) > 0 { // what has no wire form is measured by its text
				own -= len(p.Media.Data)
			}
		}
		size += max(own, 0) + len(m.Tail)
	}
	for _, d := range r.Tools {
		size += declarationSize(d)
	}
	return int64(math.Ceil(float64(size)*guessedPerByte)) + int64(pictures)
}
