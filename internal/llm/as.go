package llm

// As finds what a provider, or one that it wraps, can do beyond [Provider]: it looks for a
// T along the methods Unwrap() Provider, the outermost first. A wrapper that embeds its
// Provider would hide it otherwise.
func As[T any](p Provider) (found T, ok bool) {
	for p != nil {
		if found, ok = p.(T); ok {
			return found, true
		}
		wrapper, wraps := p.(interface{ Unwrap() Provider })
		if !wraps {
			break
		}
		p = wrapper.Unwrap()
	}
	return found, false
}
