//go:build !linux

package main

import "context"

// runLaunches measures nothing here: the native backend is Linux's.
func runLaunches(_ context.Context, _ *house, rep *report, _ launchSizes, _ string) error {
	rep.NoLaunches = "the native backend is Linux's"
	return nil
}
