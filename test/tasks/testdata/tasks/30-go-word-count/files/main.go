// Command words counts the words of a file.
package main

import (
	"fmt"
	"os"
	"strings"
)

func count(text string) map[string]int {
	counts := map[string]int{}
	for _, word := range strings.Fields(text) {
		counts[word]++
	}
	return counts
}

func main() {
	data, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for word, n := range count(string(data)) {
		fmt.Println(word, n)
	}
}
