// Command child is a binary that is nothing but the sandbox's children.
package main

import _ "github.com/metier-run/metier/internal/sandbox/native"

func main() {}
