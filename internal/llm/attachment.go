package llm

// Attachment is a file that a client sends inside a message.
type Attachment struct {
	// Name is what the client calls it, which may be anything; empty if nothing.
	Name string
	// MediaType is what the client says it is, such as "image/png"; empty if nothing.
	MediaType string
	// Size is its length in bytes, or a little more, without decoding it; 0 with a
	// Problem.
	Size int64
	// Problem says why its bytes cannot be had, in words for the model, without decoding
	// it; empty when they can. Data is nil then.
	Problem string
	// Data decodes it.
	Data func() ([]byte, error)
}
