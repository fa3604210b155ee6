package file

import "github.com/metier-run/metier/internal/tool"

// Means is the tool that a model means by a name, or empty (B1 4.1). The names under
// which models ask to look at a picture mean none of these: a page of its bytes would
// be no answer (B1 4.2).
func Means(name string) string {
	switch tool.Key(name) {
	case "readfile", "read", "readtextfile", "viewfile", "catfile", "getfile":
		return ReadName
	case "applypatch", "applypatchtool":
		return PatchName
	case "writefile", "write", "createfile", "newfile", "putfile":
		return WriteName
	case "editfile", "edit", "strreplace", "strreplaceeditor", "strreplacebasededittool", "replaceinfile", "applyedit", "stringreplace":
		return EditName
	}
	return ""
}

// The keys under which an argument comes, the surest first, as [tool.Key] folds them
// (B1 4.3).

func pathKeys() []string {
	return []string{"path", "filepath", "file", "filename", "targetfile", "paths", "files"}
}

func offsetKeys() []string { return []string{"offset", "startline", "fromline", "line", "start"} }

func limitKeys() []string { return []string{"limit", "lines", "linecount", "numlines", "count"} }

func rangeKeys() []string { return []string{"viewrange", "range", "linerange"} }

func lastKeys() []string { return []string{"endline", "toline", "lastline", "end"} }

func contentKeys() []string {
	return []string{"content", "text", "filetext", "contents", "data", "body"}
}

func overwriteKeys() []string { return []string{"overwrite"} }

func patchKeys() []string { return []string{"patch", "input", "diff", "content", "text"} }

func oldKeys() []string { return []string{"oldstring", "oldstr", "old", "search", "find", "from"} }

func newKeys() []string {
	return []string{"newstring", "newstr", "new", "replace", "replacement", "to"}
}

func allKeys() []string { return []string{"replaceall", "all", "global"} }
