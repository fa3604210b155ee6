package sessions

import "time"

// WithKeepAlive is the door with another time between the comments of a silent stream.
func (d *Door) WithKeepAlive(every time.Duration) *Door {
	d.keepAlive = every
	return d
}
