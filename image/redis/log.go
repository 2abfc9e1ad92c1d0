package redis

import (
	"fmt"
	"io"
	"time"
)

// Levels of log lines, as the mark that they have.
const (
	notice  = '*'
	warning = '#'
	verbose = '-'
)

func (s *instance) log(level rune, format string, args ...any) {
	s.logAs(s.env.PID, s.role, level, format, args...)
}

// logAs writes a line as a process: the server, or a child of it.
func (s *instance) logAs(pid int, role byte, level rune, format string, args ...any) {
	if level == verbose && s.config.values["loglevel"] != "verbose" && s.config.values["loglevel"] != "debug" {
		return
	}
	if level == notice && s.config.values["loglevel"] == "warning" {
		return
	}
	s.logMu.Lock()
	defer s.logMu.Unlock()
	_, _ = io.WriteString(s.env.Stdout, s.line(time.Now(), pid, role, level, format, args...)+"\n")
}

// line is what is logged at a time.
func (s *instance) line(at time.Time, pid int, role byte, level rune, format string, args ...any) string {
	return fmt.Sprintf("%d:%c %s %c %s", pid, role, at.UTC().Format("02 Jan 2006 15:04:05.000"), level,
		fmt.Sprintf(format, args...))
}

// said is an error in the words of the original, which begin with a capital.
type said string

func (s said) Error() string { return string(s) }

func saidf(format string, args ...any) error { return said(fmt.Sprintf(format, args...)) }
