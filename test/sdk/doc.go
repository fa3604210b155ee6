// Package sdk runs the official clients of OpenAI, Anthropic and Ollama and the AI SDK,
// unmodified, against a built metier in front of the scripted upstream. The clients
// live in modules of their own, in the folders go, node and python, and hold what an
// application may rely on; the tests here build the program, put it between client and
// upstream, and let a client ask what happened on the far side.
//
// Every client holds the two conversations of testdata/talks.json, and puts back
// what came back as its own users do. The upstream must then have what was read in
// rounds that the client never saw.
//
// It holds no code of the program, and no client here knows Metier: all that is
// ours are the members and headers that any client can send.
//
// Start at TestClients, and at rig for what a client finds in its environment.
package sdk
