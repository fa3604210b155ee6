package artifact

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/metier-run/metier/internal/config"
	"github.com/metier-run/metier/internal/guard"
)

// Why a file is not kept, for a reader who may be a model.
const (
	isLink    = "it is a symbolic link, and links are not followed: write a copy of the file itself"
	isShared  = "it has more than one name (a hard link): write a copy of it"
	isMoving  = "it changed while it was copied"
	isGone    = "it was gone before it could be copied"
	isLocked  = "it may not be read"
	isFailing = "it could not be read"
)

func tooLarge(bytes, most int64) string {
	return fmt.Sprintf("it has %d bytes, and a file that is kept has at most %d (limit %s)", bytes, most, config.ArtifactBytes)
}

func tooMany(most int64) string {
	return fmt.Sprintf("%d files of this launch are kept already, which is the most (limit %s): put files into an archive", most, config.ArtifactCount)
}

func noRoom(total int64) string {
	return fmt.Sprintf("there is no room for it in the %d bytes for all files that are kept (limit %s)", total, config.ArtifactTotal)
}

func tooDeep(most int) string {
	return fmt.Sprintf("it lies deeper than %d folders", most)
}

// overfull is for a workdir of which a part was not looked at after a launch.
func overfull(most int) string {
	return fmt.Sprintf("there are more than %d files and folders, and only so many were looked at: remove some", most)
}

// unknowable is for a workdir of which a part was not looked at before it.
func unknowable(most int) string {
	return fmt.Sprintf("there were more than %d files and folders before, so what is new cannot be told and nothing is kept: remove some", most)
}

// reason tells why something could not be looked at, without a path of the host.
func reason(err error) string {
	if e, ok := errors.AsType[*guard.PathError](err); ok {
		return e.Err.Error()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return isGone
	case errors.Is(err, fs.ErrPermission):
		return isLocked
	}
	return isFailing
}
