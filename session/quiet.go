package session

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// quietTimeout is longer than a start leads to alerts: rates look back for a minute, and what is
// scraped every five seconds is evaluated every five seconds.
const quietTimeout = 75 * time.Second

// awaitQuiet waits until no alert is left from the start, and none comes of it any more. What does not
// go away has another reason: it is how this application is. It is added to own, and nobody waits for
// it again. Waits is told of an alert, once, if there is any.
func awaitQuiet(ctx context.Context, stirring func(context.Context) ([]string, error), own map[string]bool,
	waits func(alert string),
) error {
	limited, cancel := context.WithTimeout(ctx, quietTimeout)
	defer cancel()
	var left []string
	var unread error // why the alerts could not be read
	err := poll(limited, lookInterval/4, func() (bool, error) {
		list, err := stirring(limited)
		if err != nil { // Prometheus may have been started again a moment ago.
			unread = err
			return false, nil
		}
		unread, left = nil, slices.DeleteFunc(list, func(a string) bool { return own[a] })
		if len(left) > 0 && waits != nil {
			waits(left[0])
			waits = nil
		}
		return len(left) == 0, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(left) == 0:
		return fmt.Errorf("the alerts cannot be read before any fault: %w", unread)
	}
	for _, a := range left {
		own[a] = true
	}
	return nil
}
