package aci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/internal/term"
	"github.com/aiopslab/aiopslab/observe"
)

// recorded is an incident of the shop: geo fails in the last minute.
type recorded struct{ table string }

func (recorded) Window() (from, to time.Time) { return at.Add(-10 * time.Minute), at }

func (recorded) Services() []ArchivedService {
	return []ArchivedService{{Name: "frontend", Kind: "service", Calls: []string{"geo"}}, {Name: "geo"}}
}

func (r recorded) Tables() []string { return []string{r.table} }

func (recorded) Logs(take func(string, observe.LogLine)) error {
	for i := range 3 {
		take("geo", observe.LogLine{Time: at.Add(time.Duration(i-3) * time.Minute), Level: "info", Text: "served"})
	}
	take("geo", observe.LogLine{Time: at.Add(-time.Second), Level: "error", Text: "no route to mongodb-geo"})
	take("frontend", observe.LogLine{Time: at, Text: "ready"})
	return nil
}

func (recorded) Spans(take func(ArchivedSpan)) error {
	for i, id := range []string{"early", "late"} {
		start := at.Add(-9 * time.Minute * time.Duration(1-i)).Add(-time.Second)
		take(ArchivedSpan{id, "1", "", "frontend", "GET /hotels", start, 40 * time.Millisecond, i == 1})
		take(ArchivedSpan{id, "2", "1", "geo", "Nearby", start, 30 * time.Millisecond, i == 1})
	}
	return nil
}

func (recorded) Samples(take func(time.Time, string, string, float64)) error {
	for i := range 60 {
		when := at.Add(time.Duration(i-59) * 5 * time.Second)
		errors := 0.0
		if at.Sub(when) < time.Minute {
			errors = 12.5
		}
		take(when, "geo", "error", errors)
		take(when, "geo", "cpu", 0.25)
	}
	return nil
}

func TestOffline(t *testing.T) {
	table := filepath.Join(t.TempDir(), "metrics.csv")
	if err := os.WriteFile(table, []byte("time,geo_cpu\n1,0.25\n2,0.25\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	i, err := NewOffline(OfflineOptions{
		Task: term.Localization, App: shop, Archive: recorded{table}, Dir: t.TempDir(), Self: []string{self, "tool"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	for _, tt := range []struct {
		call          string
		want, unlike  []string
		failed, ended bool
	}{
		{call: `get_logs("shop", "geo")`, want: []string{"[3 times]", "served", "no route to mongodb-geo"}},
		{call: `get_logs("shop", "geo", tail=1)`, want: []string{"no route", "[The last 1 of 4 lines."}, unlike: []string{"served"}},
		{call: `get_logs("shop", "geo", level="error")`, want: []string{"no route"}, unlike: []string{"served"}},
		{call: `get_logs("shop", "geo", since=1)`, want: []string{"no route", "served"}, unlike: []string{"times)"}},
		{call: `get_logs("shop", "goe")`, failed: true, want: []string{`there are no logs of "goe". Did you mean geo? Those of frontend, geo are there`}},
		{call: `get_logs("kube-system", "geo")`, failed: true, want: []string{`namespace "kube-system" is not shown`}},
		{
			call:   `get_metrics("shop")`,
			want:   []string{"geo      cpu     0.25", "geo      error   0", "  - error of geo: from 0 to 12.5", "/root/case", "metrics.csv"},
			unlike: []string{"- cpu of geo"},
		},
		{call: `read_metrics("/root/case/metrics.csv")`, want: []string{"time geo_cpu", "   2    0.25"}},
		{call: `get_traces("shop")`, want: []string{"1 trace, 2 spans", "Failing requests:", "trace late", "deepest error in geo Nearby"}, unlike: []string{"early"}},
		{call: `get_traces("shop", 20)`, want: []string{"2 traces, 4 spans", "trace early"}},
		{call: `get_topology("shop")`, want: []string{"frontend  service  geo", "frontend -> geo: 2"}},
		{call: `exec_shell("wc -l case/metrics.csv")`, want: []string{"3 case/metrics.csv"}},
		{call: `exec_shell("curl -sS http://geo.shop:8080/")`, want: []string{"exit status"}},
		{call: `get_alerts("shop")`, failed: true, want: []string{"Invalid action: get_alerts."}},
		{call: `begin()`, failed: true, want: []string{"Invalid action: begin."}},
		{call: `submit(["geo"])`, ended: true, want: []string{"VALID_SUBMISSION"}},
	} {
		r := do(t, i, tt.call)
		if r.Failed != tt.failed || r.Submitted != tt.ended {
			t.Errorf("%s: %+v", tt.call, r)
		}
		for _, w := range tt.want {
			if !strings.Contains(r.Text, w) {
				t.Errorf("%s: %q is not in\n%s", tt.call, w, r.Text)
			}
		}
		for _, w := range tt.unlike {
			if strings.Contains(r.Text, w) {
				t.Errorf("%s: %q is in\n%s", tt.call, w, r.Text)
			}
		}
	}
}

func TestOfflineTasks(t *testing.T) {
	for _, task := range []string{term.Mitigation, term.Incident, term.Operation, ""} {
		_, err := NewOffline(OfflineOptions{Task: task, App: shop, Archive: recorded{}})
		if err == nil || !strings.Contains(err.Error(), "detection, localization, analysis") {
			t.Errorf("%s: %v", task, err)
		}
	}
}
