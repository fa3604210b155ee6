package continuity

// filesGone follows restored rounds in which a model worked with files (DESIGN
// section 2, "Continuity for stateless clients").
const filesGone = "[The files of the working directory up to here are gone: each request begins with an empty one. Make again what you still need.]"
