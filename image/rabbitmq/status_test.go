package rabbitmq

import (
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestUptimeIsThatOfTheContainer holds that a node which is restored in an old container says that it is as old.
func TestUptimeIsThatOfTheContainer(t *testing.T) {
	w := start(t)
	w.run.Signal(syscall.SIGTERM)
	w.run.Wait()
	w.since = time.Now().Add(-3 * 24 * time.Hour)
	w.boot()
	m := regexp.MustCompile(`Uptime \(seconds\)\s+(\d+)`).FindStringSubmatch(w.ctl("status"))
	if m == nil {
		t.Fatal("status does not tell the uptime")
	}
	const days = 3 * 24 * 3600
	if up, err := strconv.Atoi(m[1]); err != nil || up < days || up > days+60 {
		t.Errorf("it is up for %s s, want %d", m[1], days)
	}
	w.stop()
}
