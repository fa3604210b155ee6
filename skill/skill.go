package skill

import "time"

// ManifestFile is the name of a manifest, in exactly this case.
const ManifestFile = "SKILL.md"

// Origin says how a skill came to be where it is.
type Origin string

// The origins.
const (
	Discovered Origin = "discovered"
	Installed  Origin = "installed"
)

// Kind groups files for listings. It restricts nothing.
type Kind string

// The kinds, by the first rule that fits (seed 1, "The directory").
const (
	KindManifest  Kind = "manifest"  // SKILL.md itself
	KindScript    Kind = "script"    // below scripts/, or of an executable type anywhere
	KindReference Kind = "reference" // below references/ or reference/, or Markdown elsewhere
	KindAsset     Kind = "asset"     // below assets/, or not text
	KindOther     Kind = "other"
)

// File is a file of a skill.
type File struct {
	// Path is relative to the skill, with "/" between names.
	Path  string
	Bytes int64
	Kind  Kind
	// Text is set when the first 4096 bytes are UTF-8 without NUL bytes.
	Text bool
}

// Skill is a skill as it was found. It is shared: do not change its maps and
// slices. Files are listed as they were when the skill was loaded; their
// content is read from the disk when it is asked for.
type Skill struct {
	Manifest
	Origin   Origin
	Warnings []Warning
	// Files is sorted by path and holds the manifest too.
	Files []File
	// Bytes is the size of all files, BodyBytes that of what Body returns.
	Bytes, BodyBytes int64
	// Modified is the time of the newest file.
	Modified time.Time

	dir     string // as found, for people
	real    string // links resolved once, for reading
	links   map[string]string
	limit   int64 // of the manifest
	folds   bool  // the file system finds a name in any case
	content *content
}

// Dir is the skill's directory on this host. It is for operators and for
// running scripts: never show it to a model or a client.
func (s Skill) Dir() string { return s.dir }
