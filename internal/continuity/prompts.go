package continuity

// Restored rounds in which a model worked with files are followed by one of these (DESIGN
// section 2, "Continuity for stateless clients"): filesGone where each request has a
// workspace of its own, roomGone where the one that lasted has been replaced.
const (
	filesGone = "[The files of the working directory up to here are gone: each request begins with an empty one. Make again what you still need.]"
	roomGone  = "[The files of the working directory up to here are gone: it was emptied since. Make again what you still need.]"
)
