package flower

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// threeLayers are those of the manifests.
var threeLayers = []layer{{"fc1", 64, 120}, {"fc2", 120, 84}, {"fc3", 84, 10}}

// federate is what a run does, in one place, with some of the parties. It returns the model's accuracy over all digits,
// and how many it reads as they are meant to look.
func federate(t *testing.T, seed uint64, who ...int) (accuracy float64, read int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	global := network1(t, r)
	for range usualRounds {
		var lists [][]array
		var weights []float64
		for _, party := range who {
			pictures := belonging(rand.New(rand.NewPCG(uint64(party), dataSeed)), party, 240)
			n := network1(t, r)
			if err := n.load(global.parameters()); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := n.learn(pictures, 0.05, r); err != nil {
					t.Fatal(err)
				}
			}
			lists, weights = append(lists, n.parameters()), append(weights, float64(len(pictures)))
		}
		if err := global.load(average(lists, weights)); err != nil {
			t.Fatal(err)
		}
	}
	var all []picture
	for i := range 200 {
		all = append(all, write(r, i%digits))
	}
	_, accuracy, err := global.test(all)
	if err != nil {
		t.Fatal(err)
	}
	for d := range digits {
		p := meant(d)
		values, err := global.forward(p.pixels[:])
		if err != nil {
			t.Fatal(err)
		}
		if best(values[len(values)-1]) == d {
			read++
		}
	}
	return accuracy, read
}

func network1(t *testing.T, r *rand.Rand) *network {
	t.Helper()
	n, err := newNetwork(threeLayers, r)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestFederation checks what users rely on: with all parties the model reads every digit, and without one it does not.
func TestFederation(t *testing.T) {
	for seed := range uint64(5) {
		if accuracy, read := federate(t, seed, 0, 1); accuracy < 0.9 || read != digits {
			t.Errorf("seed %d: both parties: accuracy %.3f, %d of %d digits", seed, accuracy, read, digits)
		}
		for party := range parties {
			if accuracy, read := federate(t, seed, party); accuracy > 0.8 || read == digits {
				t.Errorf("seed %d: party %d alone: accuracy %.3f, %d of %d digits", seed, party, accuracy, read, digits)
			}
		}
	}
}

// TestGradient compares a step with how much the loss changes when a weight does.
func TestGradient(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	layers := []layer{{"a", 64, 6}, {"b", 6, 10}}
	n, err := newNetwork(layers, r)
	if err != nil {
		t.Fatal(err)
	}
	p := []picture{write(r, 3)}
	const little, rate = 1e-2, 1e-3
	for _, at := range []struct{ layer, weight int }{{0, 130}, {0, 300}, {1, 7}, {1, 40}} {
		w := &n.weights[at.layer].data[at.weight]
		before := *w
		*w = before + little
		up, _, _ := n.test(p)
		*w = before - little
		down, _, _ := n.test(p)
		*w = before
		slope := (up - down) / (2 * little)

		stepped, _ := newNetwork(layers, r)
		if err := stepped.load(n.parameters()); err != nil {
			t.Fatal(err)
		}
		if _, err := stepped.learn(p, rate, r); err != nil {
			t.Fatal(err)
		}
		got := float64(before-stepped.weights[at.layer].data[at.weight]) / rate
		if math.Abs(got-slope) > 0.02+0.05*math.Abs(slope) {
			t.Errorf("layer %d, weight %d: the step is %v, and the loss has a slope of %v", at.layer, at.weight, got, slope)
		}
	}
}

func TestMisfit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	right := network1(t, r)
	for _, tt := range []struct {
		name   string
		layers []layer
		want   string
	}{
		{"another width", []layer{{"fc1", 64, 120}, {"fc2", 120, 84}, {"fc3", 80, 10}}, "size mismatch for fc3.weight: [10 84] was sent, and the model has [10 80]"},
		{"another name", []layer{{"fc1", 64, 120}, {"fc2", 120, 84}, {"out", 84, 10}}, "array 4 is out.weight in the model and fc3.weight in what was sent"},
		{"fewer layers", threeLayers[:2], "the model has 4 arrays and was sent 6"},
	} {
		n, err := newNetwork(tt.layers, r)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.load(right.parameters()); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	n, _ := newNetwork([]layer{{"a", 64, 84}, {"b", 80, 10}}, r)
	if _, err := n.learn([]picture{meant(1)}, 0.1, r); err == nil || !strings.Contains(err.Error(), "layer b takes 80 values, and the one before it gives 84") {
		t.Errorf("got %v", err)
	}
	for _, layers := range [][]layer{nil, {{"a", 0, 10}}, {{"a", 64, 1 << 20}}} {
		if _, err := newNetwork(layers, r); err == nil {
			t.Errorf("%v is a model", layers)
		}
	}
}

func TestParse(t *testing.T) {
	var text strings.Builder
	for _, v := range meant(4).pixels {
		text.WriteByte('0' + byte(9*v))
	}
	if p, ok := parse(text.String()); !ok || cmp.Diff(p.pixels, meant(4).pixels) != "" {
		t.Errorf("got %v, %v", p, ok)
	}
	for _, wrong := range []string{"", "1", strings.Repeat("x", pixels), strings.Repeat("1", pixels+1), strings.Repeat("é", pixels/2)} {
		if _, ok := parse(wrong); ok {
			t.Errorf("%q is a picture", wrong)
		}
	}
}
