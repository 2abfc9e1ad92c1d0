package world

import (
	"time"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/kit/past"
)

// moveLog moves the lines of a log in time, with the times in their texts.
func moveLog(lines []cloud.Line, by time.Duration) {
	for i := range lines {
		l := &lines[i]
		l.Text = past.Move(l.Text, past.Stamps(l.Text, l.Time), by)
		l.Time = l.Time.Add(by)
	}
}
