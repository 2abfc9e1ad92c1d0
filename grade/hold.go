package grade

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Hold is how long a system must be well before a mitigation counts. A [Holding] can make it longer.
const Hold = 6 * time.Second

// Holding is how long the system of a run must be well, and why. It is longer where a short look would miss
// something: a fault that comes back by itself, or something that the agent left behind and that acts by itself.
type Holding struct {
	For time.Duration `json:"for"`
	// Why are the reasons if it is longer than Hold.
	Why []string `json:"why,omitempty"`
	// Left is what the agent left behind that runs by itself. It is a reason, too.
	Left []string `json:"left,omitempty"`
}

// Least is how long the system must be well.
func (h Holding) Least() time.Duration { return cmp.Or(h.For, Hold) }

// Extend makes the time at least as long as to. If that is longer than [Hold], it notes the reason.
func (h *Holding) Extend(to time.Duration, why string) {
	if to > Hold {
		h.For, h.Why = max(h.Least(), to), append(h.Why, why)
	}
}

// Leave notes what the agent left behind, and makes the time longer for it.
func (h *Holding) Leave(to time.Duration, what string) {
	h.For, h.Left = max(h.Least(), to), append(h.Left, what)
}

// String says how long, and why if it is longer than usual.
func (h Holding) String() string {
	s := h.Least().Round(time.Second).String()
	if why := append(append([]string(nil), h.Why...), leftText(h.Left)...); len(why) > 0 {
		s += fmt.Sprintf(" (longer than %v because %s)", Hold, strings.Join(why, "; "))
	}
	return s
}

// shownLeft is how many things that were left behind a text names.
const shownLeft = 3

func leftText(left []string) []string {
	if len(left) == 0 {
		return nil
	}
	text := "the agent left behind " + strings.Join(left[:min(len(left), shownLeft)], ", ")
	if more := len(left) - shownLeft; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return []string{text}
}
