package kafka

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
	"github.com/aiopslab/aiopslab/kit/past"
)

// TestBrokerHasLived holds that a broker that is told its past has counted all the time, and keeps its offsets.
func TestBrokerHasLived(t *testing.T) {
	started := time.Now().Add(-2 * time.Hour)
	told := map[kit.Telling]func(context.Context, *past.Past) error{}
	l := startWith(t, func(env *kit.Env) {
		env.Started = started
		env.OnRecall(func(as kit.Telling, f func(context.Context, *past.Past) error) { told[as] = f })
	})
	l.produce("orders", "before", "the", "load")
	if err := told[kit.Beginning](t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	l.produce("orders", "one", "two")
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	if err := told[kit.Source](t.Context(), p); err != nil {
		t.Fatal(err)
	}
	text := kittest.Get(t, l.client, "http://kafka:9404/metrics").Body
	value := func(series string) int64 {
		m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\d+)$`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no %s in\n%s", series, text)
		}
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	want := int64(2 * p.Work(started, join))
	if n := value(`kafka_server_brokertopicmetrics_messagesin_total{topic="orders"}`); n < want-1 || n > want+1 {
		t.Errorf("%d messages came in two hours, want about %d", n, want)
	}
	if n := value("kafka_server_brokertopicmetrics_bytesin_total"); n < want {
		t.Errorf("%d bytes came in two hours, want more than %d", n, want)
	}
	end := int64(0)
	for i := range 3 {
		series := `kafka_log_log_logendoffset{topic="orders",partition="` + strconv.Itoa(i) + `"}`
		if regexp.MustCompile(regexp.QuoteMeta(series)).MatchString(text) {
			end += value(series)
		}
	}
	if end != 5 {
		t.Errorf("the log ends at %d, want 5", end)
	}
}
