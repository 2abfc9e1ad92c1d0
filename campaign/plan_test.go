package campaign

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/aiopslab/aiopslab/campaign/local"
)

// somePlan has n runs.
func somePlan(n int) *Plan {
	p := &Plan{Args: []string{"--noise", "off"}, Documents: []string{"id: mine-{task}-1"}}
	for i := range n {
		p.Runs = append(p.Runs, local.Run{Problem: "revoke_auth_mongodb-mitigation-1", Agent: "oracle", Seed: uint64(i + 1)})
	}
	return p
}

// TestPlan: a plan is read as it was written, and the same one is always the same bytes.
func TestPlan(t *testing.T) {
	p := somePlan(10_000)
	a, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := somePlan(10_000).Encode(); err != nil || !slices.Equal(a, b) {
		t.Errorf("the same plan has other bytes: %v", err)
	}
	if len(a) > maxPlan/4 {
		t.Errorf("10,000 runs take %d bytes", len(a))
	}
	got, err := DecodePlan(a)
	if err != nil || !cmp.Equal(p, got) {
		t.Errorf("another plan: %v", err)
	}
	for _, n := range []int{0, MaxRuns + 1} {
		if _, err := somePlan(n).Encode(); err == nil {
			t.Errorf("a campaign of %d runs", n)
		}
	}
	for what, data := range map[string][]byte{"nothing": nil, "text": []byte("hello"), "cut off": a[:len(a)/2]} {
		if _, err := DecodePlan(data); err == nil {
			t.Errorf("a plan that is %s was read", what)
		}
	}
}

func TestIndexes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := indexes(rapid.SliceOfDistinct(rapid.IntRange(0, 60), rapid.ID[int]).Draw(t, "list"))
		slices.Sort(list)
		got, err := parseIndexes(list.String(), 61)
		if err != nil || !slices.Equal(got, list) {
			t.Fatalf("%v became %q, and %v: %v", []int(list), list, []int(got), err)
		}
	})
	if got := (indexes{0, 1, 2, 3, 4, 5, 9}).String(); got != "0-5,9" {
		t.Errorf("%q", got)
	}
	for _, text := range []string{"5", "0-5", "3,3", "3,2", "2-1", "-1", "a", "1,", "0-99999999999999999999"} {
		if list, err := parseIndexes(text, 5); err == nil {
			t.Errorf("%q was read as %v of 5", text, []int(list))
		}
	}
}

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]Place{
		"pvc:records":            {Claim: "records"},
		"s3://lab/nightly":       {Bucket: "lab", Prefix: "nightly"},
		"s3://lab.example/a/b/":  {Bucket: "lab.example", Prefix: "a/b"},
		"s3://lab":               {Bucket: "lab"},
		"pvc:":                   {},
		"pvc:../etc":             {},
		"records":                {},
		"/records":               {},
		"s3://":                  {},
		"s3://lab/../other":      {},
		"s3://lab/a?x=y":         {},
		"gs://lab/x":             {},
		"https://lab.example/xy": {},
	} {
		got, err := ParsePlace(text)
		if got != want || (err == nil) != (want != Place{}) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), "pvc:CLAIM") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
