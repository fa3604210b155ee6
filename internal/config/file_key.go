package config

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Key is [key.<id>]: what one caller presents, and what it is for.
type Key struct {
	ID string
	// Hash is the SHA-256 of the key's text, or zero when the key stands in Env.
	Hash [sha256.Size]byte
	// Env names the variable that holds the key itself.
	Env string
	// Skills are selected for each request of the key.
	Skills []string
	// Models are those that the key may use; none means all.
	Models []string
	// Admin: the key's holder sees the sessions of all callers.
	Admin bool
	// From names the section and its place, for errors.
	From string
}

// HashPrefix stands before the hexadecimal digits of a hash.
const HashPrefix = "sha256:"

// KeyID reports whether a text may be the id of a key. It stands in logs, in
// headers and in salts.
func KeyID(id string) bool {
	const longest = 64
	return id != "" && len(id) <= longest &&
		strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// KeyLines are the lines of a file that accept a key by its hash.
func KeyLines(id, hash string) string {
	t := Table{path: []string{"key", id}}
	return t.title() + "\nhash = \"" + hash + "\"\n"
}

// ReadKeys reads each [key.<id>].
func ReadKeys(d *Document) []Key {
	var keys []Key
	for id, t := range d.Top().Tables("key") {
		k := Key{ID: id, From: t.At("").String() + ": " + t.title()}
		if !KeyID(id) {
			t.Problem("", "a key's name has 1 to 64 letters, digits and -_.")
		}
		var hash string
		hashed, named := t.String("hash", &hash), t.Variable("env", &k.Env)
		if hashed {
			readHash(t, hash, &k.Hash)
		}
		if hashed && named || !t.Has("hash") && !t.Has("env") {
			t.Problem("", `give either hash = "sha256:...", as metier keys new %s prints it, or env = "NAME", the variable that holds the key`, id)
		}
		k.Skills = readSkillNames(t, "skills")
		t.Strings("models", &k.Models)
		t.Bool("admin", &k.Admin)
		keys = append(keys, k)
	}
	return keys
}

// readHash never repeats what it read: people put the key itself there.
func readHash(t *Table, text string, to *[sha256.Size]byte) {
	digits, ok := strings.CutPrefix(text, HashPrefix)
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != len(to) {
		t.Problem("hash", "give sha256: and 64 hexadecimal digits, as metier keys new %s prints them; never the key itself", t.path[len(t.path)-1])
		return
	}
	copy(to[:], raw)
}
