package runbook

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

// operate has an operator work with a system that answers by a function.
func operate(t *testing.T, answer func(call string) string, work func(*Operator)) {
	t.Helper()
	a := Operate(agent.Briefing{Task: problem.Mitigation, Namespace: "n"}, 100, func(o *Operator) {
		work(o)
		o.Last("Done.", "submit")
	})
	defer a.(interface{ Close() error }).Close()
	observation := ""
	for range 100 {
		response, err := a.Act(t.Context(), observation)
		if err != nil {
			t.Fatal(err)
		}
		if observation = answer(response); strings.Contains(response, "submit(") {
			return
		}
	}
	t.Fatal("it does not end")
}

const alertHeader = "STATE    ALERT                 SEVERITY  ABOUT             FOR    SUMMARY\n"

// Alerts come late: only one that came after the try counts against it.
func TestAlertsAgainstATry(t *testing.T) {
	for _, c := range []struct {
		name, before, after string
		want                []string
	}{
		{"none", "", "", nil},
		{"one that fired before", "firing   Errors                critical  service=a         5s     x", "firing   Errors  critical  service=a  1m5s  x", nil},
		{"one that was pending", "pending  Errors                critical  service=a         5s     x", "firing   Errors  critical  service=a  1m5s  x", nil},
		{"one that came before the try and was not seen", "", "firing   Errors  critical  service=a  1m42s  x", nil},
		{"one that came too soon to be of the try", "", "firing   Errors  critical  service=a  50s  x", nil},
		{"one that is of the try", "", "firing   Errors  critical  service=a  15s  x", []string{"the alert Errors (service=a) fires"}},
		{"one that is pending now", "", "pending  Errors  critical  service=a  15s  x", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := alertHeader + c.before
			operate(t, func(call string) string {
				if strings.Contains(call, "get_alerts") {
					return text
				}
				return ""
			}, func(o *Operator) {
				o.Detect()
				began := time.Now()
				o.now = func() time.Time { return began }
				o.Tried()
				o.now = func() time.Time { return began.Add(time.Minute) }
				text = alertHeader + c.after
				if diff := cmp.Diff(c.want, o.Well()); diff != "" {
					t.Error(diff)
				}
				if o.i.well != (len(c.want) == 0) {
					t.Errorf("well is %v", o.i.well)
				}
				if o.Fell(); o.i.well {
					t.Error("it is well though it fell")
				}
			})
		})
	}
}

// What is found after a try, and says nothing against it.
func TestExcused(t *testing.T) {
	history := "its container was OOMKilled and restarted 2 times"
	scaled := finding{kind: scaledToZero, component: "a"}
	for _, c := range []struct {
		name    string
		try     try
		slow    bool // b was before
		finding finding
		rows    string
		want    bool
	}{
		{"an old restart of another", try{fixed: []finding{scaled}}, false, finding{kind: outOfMemory, component: "b", evidence: history}, "b-1-2  1/1  Running  2  5s  1  n", true},
		{"a restart of another who is not ready", try{fixed: []finding{scaled}}, false, finding{kind: killed, component: "b", evidence: history}, "b-1-2  0/1  Running  2  5s  1  n", false},
		{
			"a restart that was to be mended and has not come again",
			try{fixed: []finding{{kind: outOfMemory, component: "b"}}, seen: []finding{{kind: outOfMemory, component: "b", evidence: history}}},
			false,
			finding{kind: outOfMemory, component: "b", evidence: history},
			"b-1-2  1/1  Running  2  5s  1  n", true,
		},
		{
			"a restart that was to be mended and has come again",
			try{fixed: []finding{{kind: outOfMemory, component: "b"}}, seen: []finding{{kind: outOfMemory, component: "b", evidence: history}}},
			false,
			finding{kind: outOfMemory, component: "b", evidence: "its container was OOMKilled and restarted 3 times"},
			"b-1-2  1/1  Running  3  5s  1  n", false,
		},
		{"slow for a moment", try{}, false, finding{kind: slow, component: "b"}, "", true},
		{"as slow as before", try{fixed: []finding{{kind: networkFailing, component: "b"}}}, true, finding{kind: slow, component: "b"}, "", false},
		{"slow, which was not the trouble", try{fixed: []finding{scaled}}, true, finding{kind: slow, component: "b"}, "", true},
		{"requests fail", try{fixed: []finding{scaled}}, true, finding{kind: failing, component: "b"}, "", false},
	} {
		o := &Operator{i: &investigation{system: newSystem("n")}, try: c.try, slow: map[string]bool{"b": c.slow}}
		o.i.names = []string{"a", "b"}
		o.i.rows = readRows(header + c.rows)
		if got := o.excused(c.finding); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// What is of a moment is looked at again before a try is taken back for it.
func TestLooksAgainBeforeItObjects(t *testing.T) {
	for _, stays := range []bool{false, true} {
		measured := 0
		operate(t, func(call string) string {
			switch {
			case strings.Contains(call, "grep -i prometheus"):
				return "observe prometheus-server ClusterIP 1.2.3.4 <none> 80/TCP 1s"
			case strings.Contains(call, "measure prometheus"):
				if measured++; measured <= 2 || stays {
					return "http-errors a 0.5"
				}
			}
			return ""
		}, func(o *Operator) {
			o.Detect()
			o.Tried()
			got := o.Well()
			if stays != slices.Contains(got, "a: 50 % of the requests to it fail") || measured != 3 {
				t.Errorf("stays is %v: %v after %d looks", stays, got, measured)
			}
		})
	}
}

// What was set right in vain explains nothing any more.
func TestRuleOut(t *testing.T) {
	o := &Operator{i: &investigation{system: newSystem("n")}}
	o.i.found = []finding{
		{kind: killed, component: "cache", evidence: "x"},
		{kind: networkFailing, component: "profile", evidence: "y"},
		{kind: slow, component: "front", evidence: "z"},
	}
	var got []string
	for {
		list := o.Causes()
		if len(list) == 0 {
			break
		}
		for _, c := range list {
			got = append(got, c.Component)
			o.ruleOut(c.Key())
		}
	}
	if diff := cmp.Diff([]string{"cache", "profile"}, got); diff != "" {
		t.Error(diff)
	}
}

// What logs have said against a try is known at the next one, and what the try itself may have caused is not.
func TestReflect(t *testing.T) {
	o := &Operator{i: &investigation{console: &console{closed: true}, system: newSystem("n")}} // It can look at nothing more.
	o.learn([]finding{
		{kind: tlsRequired, component: "store", evidence: "x"},
		{kind: unschedulable, component: "web", evidence: "y"},
	})
	list := o.Reflect("What else?", "tried")
	if len(list) != 1 || list[0].Component != "store" || !o.out["tried"] {
		t.Errorf("%+v, ruled out %v", list, o.out)
	}
}
