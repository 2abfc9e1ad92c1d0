package fault

import "time"

// Lasting is the optional power of a [Fault] that a single look does not settle. A fault without it
// shows whenever it is there, and a few seconds after it has gone it does not show any more.
type Lasting interface {
	// Hold is how long the system must be well before the fault can be believed to be gone, and the
	// reason: it comes and goes, or takes time to come back. Zero is no longer than usual.
	Hold() (time.Duration, string)
	// Linger is how long the fault may still show after its cause has gone.
	Linger() time.Duration
}

// HoldOf is how long a system must be well before a fault can be believed to be gone; zero is no
// longer than usual.
func HoldOf(f Fault) (time.Duration, string) {
	if l, ok := f.(Lasting); ok {
		return l.Hold()
	}
	return 0, ""
}

// LingerOf is how long a fault may still show after its cause has gone.
func LingerOf(f Fault) time.Duration {
	if l, ok := f.(Lasting); ok {
		return l.Linger()
	}
	return settle
}

// usersWindow is the part of the load's past that a fault looks at which is seen by it.
const usersWindow = 10 * time.Second

var _ Lasting = (*disturbed)(nil)

// Hold is longer for what comes and goes, and for what has not grown to its magnitude yet: a limit that
// was raised may be reached again.
func (f *disturbed) Hold() (hold time.Duration, why string) {
	s := f.what.Schedule
	if left := s.Ramp - time.Since(f.began); s.Ramp > 0 && left > 0 {
		hold, why = left+seenMargin, "the fault still grows"
	}
	if s.Every > 0 && s.Every+seenMargin > hold {
		hold, why = s.Every+seenMargin, "the fault comes and goes"
	}
	return hold, why
}

// Linger implements [Lasting]: pods have to settle, and users' requests to be forgotten.
func (f *disturbed) Linger() time.Duration {
	linger := killSettle + usersWindow
	if every := f.what.Schedule.Every; every > 0 {
		linger += every + seenMargin
	}
	return linger
}
