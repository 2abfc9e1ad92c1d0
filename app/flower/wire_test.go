package flower

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/aiopslab/aiopslab/app/flower/flowerpb"
)

func TestWire(t *testing.T) {
	n := network1(t, rand.New(rand.NewPCG(1, 1)))
	got, err := unpack(pack(n.parameters()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(n.parameters(), got, cmp.AllowUnexported(array{})); diff != "" {
		t.Error(diff)
	}
	endless := float32(math.Inf(1))
	for name, a := range map[string]*flowerpb.Array{
		"too few bytes": {Name: "a", Shape: []int32{2}, Data: make([]byte, 7)},
		"a negative":    {Name: "a", Shape: []int32{-1, -1}, Data: make([]byte, 4)},
		"too large":     {Name: "a", Shape: []int32{1024, 1024, 1024}, Data: make([]byte, 4)},
		"not finite":    pack([]array{{"a", []int{1}, []float32{endless}}})[0],
	} {
		if list, err := unpack([]*flowerpb.Array{a}); err == nil {
			t.Errorf("%s: got %v", name, list)
		}
	}
}

// FuzzResult reads what a node may send.
func FuzzResult(f *testing.F) {
	n, err := newNetwork([]layer{{"fc1", 64, 4}, {"fc2", 4, 10}}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		f.Fatal(err)
	}
	whole, err := proto.Marshal(&flowerpb.Message{Arrays: pack(n.parameters()), Metrics: map[string]float64{"num-examples": 3}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &flowerpb.Message{}
		if proto.Unmarshal(b, m) != nil {
			return
		}
		list, weight, err := result(n, m)
		if err != nil {
			return
		}
		if err := n.fits(list); err != nil || !(weight > 0) {
			t.Errorf("weight %v, %v", weight, err)
		}
	})
}
