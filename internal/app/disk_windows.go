package app

import "golang.org/x/sys/windows"

// disk is the bytes that are free for this user where a directory is; negative when
// that is not known.
func disk(dir string) (kind string, free int64) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return "", -1
	}
	var n uint64
	if windows.GetDiskFreeSpaceEx(name, &n, nil, nil) != nil {
		return "", -1
	}
	return "", int64(n)
}
