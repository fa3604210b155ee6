package web

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/fault"
	"github.com/metier-run/metier/internal/llm"
	"github.com/metier-run/metier/internal/server"
)

// uploaded is the answer of /api/upload: the name is the one in the workspace.
type uploaded struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

func (d *Door) upload(w http.ResponseWriter, r *http.Request) {
	if d.options.Sessions.code == nil {
		e := fault.New(fault.Forbidden, "there is no workspace to put a file in: start the server with --code-exec")
		e.Detail = "code_disabled"
		d.Refuse(w, r, e)
		return
	}
	file, id, err := d.form(r)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	x, err := d.options.Sessions.enter(r.Context(), ownerOf(r), id)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	defer d.options.Sessions.leave(x)
	name, err := x.add(file)
	if err != nil {
		d.Refuse(w, r, err)
		return
	}
	server.WriteJSON(w, http.StatusCreated, uploaded{Name: name, Bytes: file.Size})
}

// form reads the file of a multipart form, and the session that it is for.
func (d *Door) form(r *http.Request) (file llm.Attachment, session string, err error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return file, "", invalid("file", `the body must be multipart/form-data with the field "file": %v`, err)
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return file, "", server.BodyError(err)
		}
		switch part.FormName() {
		case "file":
			if file.Data != nil {
				return file, "", invalid("file", `there are two fields "file": send one file at a time`)
			}
			file, err = d.file(part)
		case "sessionId":
			session, err = d.field(part)
		default:
			err = invalid(part.FormName(), `the form has a field %q: it may have "file" and "sessionId"`, part.FormName())
		}
		if err != nil {
			return file, "", err
		}
	}
	if file.Data == nil {
		return file, "", invalid("file", `the form has no field "file"`)
	}
	return file, session, nil
}

// file reads the file itself.
func (d *Door) file(part *multipart.Part) (llm.Attachment, error) {
	most := d.options.Limits.Get(config.AttachBytes)
	data, err := io.ReadAll(io.LimitReader(part, most+1))
	if err != nil {
		return llm.Attachment{}, server.BodyError(err)
	}
	if int64(len(data)) > most {
		e := fault.New(fault.TooLarge, "the file is larger than %d bytes (limit %s)", most, config.AttachBytes)
		e.Param, e.Detail = "file", "attachment_too_large"
		return llm.Attachment{}, e
	}
	return llm.Attachment{
		Name: part.FileName(), MediaType: part.Header.Get("Content-Type"), Size: int64(len(data)),
		Data: func() ([]byte, error) { return data, nil },
	}, nil
}

// field reads a short text.
func (d *Door) field(part *multipart.Part) (string, error) {
	most := d.options.Limits.Get(config.RequestModel) // a name, as that of a model is
	text, err := io.ReadAll(io.LimitReader(part, most+1))
	if err != nil {
		return "", server.BodyError(err)
	}
	if int64(len(text)) > most {
		return "", noSession()
	}
	return string(text), nil
}
