package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// procFS is where a Linux kernel tells what its processes use.
const procFS = "/proc"

// hasProc says whether this system tells.
func hasProc() bool {
	_, err := os.Stat(filepath.Join(procFS, "self", "schedstat"))
	return err == nil
}

// cpuTime is the processor time that a process has used so far: the sum over its
// threads, in nanoseconds where /proc/PID/stat has ticks of 10 ms. Go programs
// keep their threads, so none is lost by ending.
func cpuTime(pid int) (time.Duration, error) {
	files, err := filepath.Glob(filepath.Join(procFS, strconv.Itoa(pid), "task", "*", "schedstat"))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("read processor time: process %d has ended", pid)
	}
	var sum time.Duration
	for _, f := range files {
		data, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("read processor time: %w", err)
		}
		n, _, _ := bytes.Cut(data, []byte(" "))
		ns, err := strconv.ParseInt(string(n), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read processor time: %s: %w", f, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

// residentKiB is the memory of a process that is in use now, in KiB.
func residentKiB(pid int) (float64, error) {
	file := filepath.Join(procFS, strconv.Itoa(pid), "status")
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	for line := range bytes.Lines(data) {
		value, ok := bytes.CutPrefix(line, []byte("VmRSS:"))
		if !ok {
			continue
		}
		kib, err := strconv.ParseFloat(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB")))), 64)
		if err != nil {
			return 0, fmt.Errorf("read memory: %s: %w", file, err)
		}
		return kib, nil
	}
	return 0, fmt.Errorf("read memory: %s has no VmRSS", file)
}
