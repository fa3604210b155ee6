package bwrap

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// childPID is the first process of a sandbox by what bubblewrap says of it.
func childPID(info []byte) (int, error) {
	var told struct {
		PID int `json:"child-pid"`
	}
	if err := json.Unmarshal(info, &told); err != nil {
		return 0, fmt.Errorf("read what bubblewrap tells: %w", err)
	}
	if told.PID <= 1 {
		return 0, fmt.Errorf("read what bubblewrap tells: there is no process %d", told.PID)
	}
	return told.PID, nil
}
