// Package matrix tests every door with every provider: the same short conversations, asked
// in each client's dialect, buffered and streamed, of upstreams that speak each provider's.
//
// It checks what must hold in every cell, whatever the dialects: one end, usage that is
// the sum of all rounds, calls and results that pair, text that is its deltas joined, and
// no call of the host in sight. What a cell cannot carry is listed with the warning that
// its client gets.
package matrix
