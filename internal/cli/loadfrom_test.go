package cli

import (
	"fmt"
	"testing"

	"github.com/aiopslab/aiopslab/cloud/kube"
	"github.com/aiopslab/aiopslab/problem"
)

// TestFromPod shows which loads come from a pod.
func TestFromPod(t *testing.T) {
	for _, tt := range []struct {
		flag, load string
		want       bool
	}{
		{"auto", "10", false},
		{"auto", fmt.Sprint(kube.ForwardedRate), false},
		{"auto", fmt.Sprint(kube.ForwardedRate + 1), true},
		{"auto", "{rate: {burst: {base: 1, peak: 1000, every: 1m, lasting: 1s}}}", true},
		{"auto", "{users: {count: 100, think: {min: 1s, max: 2s}}}", false},
		{"auto", "{users: {count: 1, think: {min: 0s, max: 0s}}}", true}, // Only the application holds them up.
		{"here", "5000", false},
		{"cluster", "1", true},
		{"cluster", "0", false},
		{"", "5000", false}, // The command has no such flag.
	} {
		l, err := problem.ParseLoad(tt.load)
		if err != nil {
			t.Fatal(err)
		}
		f := cloudFlags{loadFrom: tt.flag}
		if got := f.fromPod(l); got != tt.want {
			t.Errorf("--load-from %s, load %s: %v", tt.flag, tt.load, got)
		}
	}
	if (&cloudFlags{loadFrom: "cluster"}).fromPod(nil) {
		t.Error("there is a pod for no load")
	}
}
