package fault

import "time"

// Lasting is an optional power of a [Fault]: one look is not enough to tell whether the fault is there. A fault
// without it shows as long as it is there, and stops showing a few seconds after it has gone.
type Lasting interface {
	// Hold returns how long the system must be well before one can believe that the fault is gone, and the
	// reason: it comes and goes, or takes time to come back. Zero means the usual time.
	Hold() (time.Duration, string)
	// Linger is how long the fault may still show after its cause has gone.
	Linger() time.Duration
}

// HoldOf returns how long a system must be well before one can believe that a fault is gone, and why. Zero means the
// usual time.
func HoldOf(f Fault) (time.Duration, string) {
	if l, ok := f.(Lasting); ok {
		return l.Hold()
	}
	return 0, ""
}

// LingerOf returns how long a fault may still show after its cause has gone.
func LingerOf(f Fault) time.Duration {
	if l, ok := f.(Lasting); ok {
		return l.Linger()
	}
	return settle
}

// usersWindow is how far back a fault looks if it shows in what users get.
const usersWindow = 10 * time.Second

var _ Lasting = (*disturbed)(nil)

// Hold implements [Lasting]. It is longer for a fault that comes and goes, and for one that still grows: a limit that
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
