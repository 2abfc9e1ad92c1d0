package flower

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// layer describes one layer of a network: every output is a weighted sum of all inputs.
type layer struct {
	Name string `json:"name"`
	In   int    `json:"in"`
	Out  int    `json:"out"`
}

// maxWidth bounds what a task can ask for.
const maxWidth = 1024

// array is a named list of numbers with a shape, as parties send it to each other.
type array struct {
	name  string
	shape []int
	data  []float32
}

// network is a model: layers one after the other, with a rectifier between them. Its output is how likely each digit
// is.
type network struct {
	layers  []layer
	weights []array // of each layer: out x in
	biases  []array // of each layer: out
}

// newNetwork makes a network with weights that are drawn.
func newNetwork(layers []layer, r *rand.Rand) (*network, error) {
	if len(layers) == 0 {
		return nil, errors.New("a model needs layers")
	}
	n := &network{layers: layers}
	for _, l := range layers {
		if l.In < 1 || l.Out < 1 || l.In > maxWidth || l.Out > maxWidth {
			return nil, fmt.Errorf("layer %s: in and out must be between 1 and %d", l.Name, maxWidth)
		}
		w := array{l.Name + ".weight", []int{l.Out, l.In}, make([]float32, l.Out*l.In)}
		scale := math.Sqrt(2 / float64(l.In))
		for i := range w.data {
			w.data[i] = float32(scale * r.NormFloat64())
		}
		n.weights = append(n.weights, w)
		n.biases = append(n.biases, array{l.Name + ".bias", []int{l.Out}, make([]float32, l.Out)})
	}
	return n, nil
}

// parameters are all of the network's arrays. They are the network's own.
func (n *network) parameters() (list []array) {
	for i := range n.layers {
		list = append(list, n.weights[i], n.biases[i])
	}
	return list
}

// load takes over parameters that fit.
func (n *network) load(list []array) error {
	if err := n.fits(list); err != nil {
		return err
	}
	for i, a := range n.parameters() {
		copy(a.data, list[i].data)
	}
	return nil
}

// fits returns an error unless parameters have the network's names and shapes.
func (n *network) fits(list []array) error {
	own := n.parameters()
	if len(list) != len(own) {
		return fmt.Errorf("the model has %d arrays and was sent %d", len(own), len(list))
	}
	for i, a := range list {
		if a.name != own[i].name {
			return fmt.Errorf("array %d is %s in the model and %s in what was sent", i, own[i].name, a.name)
		}
		if fmt.Sprint(a.shape) != fmt.Sprint(own[i].shape) || len(a.data) != len(own[i].data) {
			return fmt.Errorf("size mismatch for %s: %v was sent, and the model has %v", a.name, a.shape, own[i].shape)
		}
	}
	return nil
}

// forward returns what every layer puts out, the input first. The last one's are probabilities.
func (n *network) forward(input []float32) ([][]float32, error) {
	values := [][]float32{input}
	for i, l := range n.layers {
		x := values[i]
		if len(x) != l.In {
			return nil, fmt.Errorf("layer %s takes %d values, and the one before it gives %d", l.Name, l.In, len(x))
		}
		y := make([]float32, l.Out)
		for o := range y {
			sum := n.biases[i].data[o]
			for j, w := range n.weights[i].data[o*l.In : (o+1)*l.In] {
				sum += w * x[j]
			}
			if i < len(n.layers)-1 {
				sum = max(0, sum)
			}
			y[o] = sum
		}
		values = append(values, y)
	}
	softmax(values[len(values)-1])
	return values, nil
}

// softmax turns numbers into probabilities.
func softmax(y []float32) {
	top := y[0]
	for _, v := range y {
		top = max(top, v)
	}
	var sum float32
	for i, v := range y {
		y[i] = float32(math.Exp(float64(v - top)))
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
}

// learn goes over pictures once, in an order that is drawn, and follows the gradient of the loss a step after each.
// It returns the mean loss.
func (n *network) learn(pictures []picture, rate float32, r *rand.Rand) (loss float64, err error) {
	for _, at := range r.Perm(len(pictures)) {
		p := &pictures[at]
		values, err := n.forward(p.pixels[:])
		if err != nil {
			return 0, err
		}
		out := values[len(values)-1]
		if p.digit >= len(out) {
			return 0, fmt.Errorf("the model tells %d classes, and there is a picture of class %d", len(out), p.digit)
		}
		loss -= math.Log(max(1e-9, float64(out[p.digit])))
		delta := append([]float32(nil), out...) // the gradient by the sums of a layer
		delta[p.digit]--
		for i := len(n.layers) - 1; i >= 0; i-- {
			delta = n.step(i, values[i], delta, rate)
		}
	}
	return loss / float64(max(1, len(pictures))), nil
}

// step corrects one layer, and returns the gradient by the sums of the one before it.
func (n *network) step(i int, x, delta []float32, rate float32) []float32 {
	l := n.layers[i]
	before := make([]float32, l.In)
	for o, d := range delta {
		if d == 0 {
			continue
		}
		row := n.weights[i].data[o*l.In : (o+1)*l.In]
		for j, v := range x {
			before[j] += d * row[j]
			row[j] -= rate * d * v
		}
		n.biases[i].data[o] -= rate * d
	}
	for j, v := range x {
		if v <= 0 { // The rectifier lets nothing through.
			before[j] = 0
		}
	}
	return before
}

// test returns the mean loss over pictures, and the share that is read rightly.
func (n *network) test(pictures []picture) (loss, accuracy float64, err error) {
	right := 0
	for _, p := range pictures {
		values, err := n.forward(p.pixels[:])
		if err != nil {
			return 0, 0, err
		}
		out := values[len(values)-1]
		if p.digit >= len(out) {
			return 0, 0, fmt.Errorf("the model tells %d classes, and there is a picture of class %d", len(out), p.digit)
		}
		loss -= math.Log(max(1e-9, float64(out[p.digit])))
		if best(out) == p.digit {
			right++
		}
	}
	count := float64(max(1, len(pictures)))
	return loss / count, float64(right) / count, nil
}

// best is where the largest number is.
func best(list []float32) (at int) {
	for i, v := range list {
		if v > list[at] {
			at = i
		}
	}
	return at
}

// average is the mean of parameters, each list with a weight. All have the same shapes.
func average(lists [][]array, weights []float64) []array {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	mean := make([]array, len(lists[0]))
	for i, a := range lists[0] {
		mean[i] = array{a.name, a.shape, make([]float32, len(a.data))}
		for k, list := range lists {
			share := float32(weights[k] / sum)
			for j, v := range list[i].data {
				mean[i].data[j] += share * v
			}
		}
	}
	return mean
}
