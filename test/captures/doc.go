// Package captures sends requests that real clients have sent through the program and
// compares what reaches a recording upstream. To an upstream of the client's own dialect
// nothing is lost and nothing changed but what the host adds; to one of another dialect
// every word arrives, and what cannot is named in a warning header.
//
// It has requests of its own in testdata, shaped like those of real clients. With
// METIER_CAPTURES it takes those of a folder besides: JSON files with "requests", each
// with "method", "url", "headers" and "body", in which long strings may be cut and a
// list of tools may be a word that points to the one before.
//
// Start at TestCaptures.
package captures
