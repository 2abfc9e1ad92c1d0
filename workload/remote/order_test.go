package remote

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aiopslab/aiopslab/workload"
)

// rich is a mix with everything that a mix can have.
const rich = `
name: rich
description: all there is
operations:
- name: read
  weight: 0.25
  recall: note
  vars: {id: "{{int 1 9}}", second: "<{{.id}}> & é"}
  path: /notes/{{.id}}
  query: {b: "{{.second}}", a: "1"}
  headers: {X-One: "1", X-Two: "{{.n}}"}
  expect: {status: [200, 404], body: "^.*$", json: ["true"]}
- name: write
  weight: 3
  method: PUT
  path: /notes
  form: {text: "{{.n}}"}
  capture: {id: .id}
  keep: note
  then:
  - {path: "/notes/{{.id}}", within: 1s, expect: {status: [200]}}
`

func richMix(t *testing.T) *workload.Mix {
	t.Helper()
	m, err := workload.ParseMix("rich.yaml", []byte(rich))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// specs are loads of every kind.
func specs(t *testing.T) map[string]workload.Spec {
	m := richMix(t)
	open := func(a workload.Arrivals) workload.Spec {
		return workload.Spec{Mix: m, Arrivals: &a, Held: true, Seed: 1<<64 - 1}
	}
	shape := func(p ...workload.Phase) workload.Spec { return open(workload.Arrivals{Rate: p}) }
	ten := 10.0
	return map[string]workload.Spec{
		"constant": open(workload.Arrivals{Rate: workload.Constant(0.1), Process: workload.Even}),
		"phases": shape(
			workload.Phase{For: time.Minute, Ramp: &workload.Ramp{From: 1, To: 100}},
			workload.Phase{For: 90 * time.Second, Step: &workload.Step{From: 9, To: 3, By: 2, Every: time.Second}},
			workload.Phase{Constant: &ten},
		),
		"daily": shape(workload.Phase{Daily: &workload.Daily{Mean: 50, Amplitude: 0.8, Peak: time.Second, Period: time.Minute}}),
		"burst": shape(workload.Phase{Burst: &workload.Burst{Base: 1, Peak: 9, Every: time.Minute, Lasting: time.Second, After: 1}}),
		"lively": open(workload.Arrivals{
			Rate: workload.Constant(5), Noise: 0.1, Process: workload.Normal,
			Surges: &workload.Surges{Factor: 3, Every: time.Minute, Lasting: 5 * time.Second},
		}),
		"replay": open(workload.Arrivals{Replay: &workload.Replay{Trace: "time,operation\n0,read\n0.5,write\n2,\n", Speed: 2}}),
		"users": {
			Mix: m, Users: &workload.Users{Count: 7, Think: workload.Think{Min: time.Second, Max: 2 * time.Second}},
			Duration: time.Hour, Timeout: time.Second, MaxInFlight: 3,
		},
	}
}

// TestOrder shows that an order arrives as it was sent, and has the same requests sent at the same times.
func TestOrder(t *testing.T) {
	for name, spec := range specs(t) {
		t.Run(name, func(t *testing.T) {
			want := Order{Spec: spec, BaseURL: "http://frontend.shop:5000"}
			data, err := want.Pack()
			if err != nil {
				t.Fatal(err)
			}
			got, err := Unpack(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(workload.Replay{})); diff != "" {
				t.Error(diff)
			}
			if spec.Users != nil {
				return
			}
			// The first step draws no text that users write, so the plans are equal.
			a, err := spec.Plan(200)
			if err != nil {
				t.Fatal(err)
			}
			b, err := got.Spec.Plan(200)
			if diff := cmp.Diff(a, b); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// TestNoOrder shows what is told about orders that cannot be.
func TestNoOrder(t *testing.T) {
	zipped := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		fmt.Fprint(z, text)
		z.Close()
		return b.Bytes()
	}
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"no order":      {[]byte("hello"), "the order: "},
		"cut short":     {zipped(`{"Version":1}`)[:20], "the order: unexpected EOF"},
		"no JSON":       {zipped(`hello`), "the order: invalid character"},
		"a newer one":   {zipped(`{"Version":2,"Colour":"blue"}`), "the order is of version 2, and this image knows 1: build the images anew"},
		"something new": {zipped(`{"Version":1,"Colour":"blue"}`), `the order: json: unknown field "Colour"`},
	} {
		if _, err := Unpack(tt.data); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Order{}).Pack(); err == nil {
		t.Error("an order without a mix is packed")
	}
	// A trace that nothing makes shorter does not fit.
	var trace strings.Builder
	trace.WriteString("time\n")
	dice, at := rand.New(rand.NewPCG(1, 2)), 0.0
	for range 300_000 {
		at += dice.Float64()
		fmt.Fprintf(&trace, "%.9f\n", at)
	}
	long := workload.Spec{Mix: richMix(t), Arrivals: &workload.Arrivals{Replay: &workload.Replay{Trace: trace.String()}}}
	_, err := Order{Spec: long}.Pack()
	if err == nil || !strings.Contains(err.Error(), "replay a shorter trace") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a trace of %d bytes: %v", trace.Len(), err)
	}
}
