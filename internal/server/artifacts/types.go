package artifacts

import (
	"path"
	"strings"
)

// contentType is told by a file's name and never by what is in it. Nothing that a
// browser runs has a type here: no HTML, no SVG or other XML, no script.
func contentType(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".txt", ".log", ".md":
		return "text/plain; charset=utf-8"
	case ".csv":
		return "text/csv; charset=utf-8"
	case ".json":
		return "application/json"
	case ".pdf":
		return "application/pdf"
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	case ".mp3":
		return "audio/mpeg"
	case ".wav":
		return "audio/wav"
	case ".mp4":
		return "video/mp4"
	case ".zip":
		return "application/zip"
	case ".gz", ".tgz":
		return "application/gzip"
	}
	return officeType(name)
}

func officeType(name string) string {
	const open = "application/vnd.openxmlformats-officedocument."
	switch strings.ToLower(path.Ext(name)) {
	case ".docx":
		return open + "wordprocessingml.document"
	case ".xlsx":
		return open + "spreadsheetml.sheet"
	case ".pptx":
		return open + "presentationml.presentation"
	}
	return "application/octet-stream"
}
