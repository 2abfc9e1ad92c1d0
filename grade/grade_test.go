package grade

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/problem"
)

// Every time is told, and how long a run took is the last of them.
func TestTimes(t *testing.T) {
	for _, tt := range []struct {
		r    Result
		want map[string]float64
		took float64
	}{
		{Result{"TTD": 4.0, "TTM": 60.5, "steps": 3}, map[string]float64{"TTD": 4, "TTM": 60.5}, 60.5},
		{Result{"TTO": 7.0}, map[string]float64{"TTO": 7}, 7},
	} {
		if diff := cmp.Diff(tt.want, tt.r.Times()); diff != "" {
			t.Error(diff)
		}
		if took := tt.r.Took(); took == nil || *took != tt.took {
			t.Errorf("%v took %v", tt.r, took)
		}
	}
	if took := (Result{"TTM": "long"}).Took(); took != nil {
		t.Errorf("it took %v", *took)
	}
}

func TestDetection(t *testing.T) {
	for _, tt := range []struct {
		submitted any
		expected  string
		want      string
	}{
		{"Yes", "Yes", "Correct"},
		{" yes\n", "Yes", "Correct"},
		{[]any{"No"}, "No", "Correct"},
		{true, "Yes", "Correct"}, // The model meant Yes; there is nothing to guess.
		{"No", "Yes", "Incorrect"},
		{"maybe", "Yes", "Invalid Format"},
		{nil, "Yes", "Invalid Format"},
		{[]any{"Yes", "No"}, "Yes", "Invalid Format"},
		{map[string]any{"a": 1}, "No", "Invalid Format"},
		{int64(1), "Yes", "Invalid Format"},
	} {
		got := Detection(tt.submitted, tt.expected)
		if got["Detection Accuracy"] != tt.want || got.Success() != (tt.want == "Correct") {
			t.Errorf("%v for %s: %v", tt.submitted, tt.expected, got)
		}
	}
}

func TestLocalization(t *testing.T) {
	geo := []problem.Component{{Name: "geo"}}
	auth := []problem.Component{{Name: "mongodb-geo", Aliases: []string{"geo"}}}
	two := []problem.Component{{Name: "geo"}, {Name: "rate"}}
	for _, tt := range []struct {
		submitted any
		expected  []problem.Component
		accuracy  float64
		success   bool
		subset    bool
		top1      bool
	}{
		{[]any{"geo"}, geo, 100, true, true, true},
		{"geo", geo, 100, true, true, true},
		{[]any{"geo", "rate"}, geo, 50, false, true, true},
		{[]any{"rate", "geo"}, geo, 50, false, true, false},
		{[]any{}, geo, 0, false, false, false},
		{nil, geo, 0, false, false, false},
		{[]any{"Geo"}, geo, 100, true, true, true},
		{[]any{"geo", "geo"}, geo, 100, true, true, true},
		{map[string]any{"geo": int64(1)}, geo, 100, true, true, true},
		{[]any{"geo-658fb58ddd-m45qs"}, geo, 100, true, true, true},
		{[]any{"deployment/geo"}, geo, 100, true, true, true},
		{[]any{"geo, rate"}, two, 100, true, true, true},
		{[]any{"rate"}, two, 0, false, false, true},
		{[]any{"mongodb-geo", "geo"}, auth, 100, true, true, true},
		{[]any{"mongodb-geo"}, geo, 0, false, false, false},
		{[]any{"geolocation"}, geo, 0, false, false, false},
		{[]any{}, nil, 100, true, false, true},
		{[]any{"geo"}, nil, 0, false, false, false},
		{int64(5), geo, 0, false, false, false},
		{true, geo, 0, false, false, false},
		{[]any{[]any{"geo"}}, geo, 100, true, true, true},
		{[]any{map[string]any{}}, geo, 0, false, false, false},
	} {
		got := Localization(tt.submitted, tt.expected)
		if got["Localization Accuracy"] != tt.accuracy || got.Success() != tt.success || got["is_subset"] != tt.subset || got["top_1"] != tt.top1 {
			t.Errorf("%v for %v: %v", tt.submitted, tt.expected, got)
		}
	}
}

func TestAnalysis(t *testing.T) {
	cause := []fault.Cause{{SystemLevel: "Application", FaultType: "Authentication Issue"}}
	for _, tt := range []struct {
		submitted   any
		expected    []fault.Cause
		level, kind bool
	}{
		{map[string]any{"system_level": "Application", "fault_type": "Authentication Issue"}, cause, true, true},
		{map[string]any{"system_level": " application ", "fault_type": "authentication issue"}, cause, true, true},
		{[]any{map[string]any{"system_level": "Application", "fault_type": "Misconfiguration"}}, cause, true, false},
		{map[string]any{"system_level": int64(5), "fault_type": nil}, cause, false, false},
		{"Application", cause, false, false},
		{nil, cause, false, false},
		{nil, nil, true, true},
		{map[string]any{}, nil, true, true},
		{map[string]any{"system_level": "Application"}, nil, false, false},
	} {
		want := Result{"system_level_correct": tt.level, "fault_type_correct": tt.kind, "success": tt.level && tt.kind}
		got := Analysis(tt.submitted, tt.expected)
		delete(got, "invalid")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: %s", tt.submitted, diff)
		}
	}
}

// TestOddSubmissions: every shape gets a verdict from every judge.
func TestOddSubmissions(t *testing.T) {
	odd := []any{nil, int64(-1), 1.5, "", "\x00", []any{}, []any{nil}, []any{[]any{[]any{}}}, map[string]any{"": nil}, []any{map[string]any{"a": []any{}}}, struct{}{}}
	for _, v := range odd {
		for name, r := range map[string]Result{
			"detection": Detection(v, "Yes"), "localization": Localization(v, []problem.Component{{Name: "geo"}}), "analysis": Analysis(v, []fault.Cause{{SystemLevel: "Application", FaultType: "Code Defect"}}),
		} {
			if r.Success() {
				t.Errorf("%s accepts %s", name, fmt.Sprintf("%#v", v))
			}
		}
	}
}
