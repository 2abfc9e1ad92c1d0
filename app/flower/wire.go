package flower

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/aiopslab/aiopslab/app/flower/flowerpb"
)

// pack writes arrays as they are sent.
func pack(list []array) (sent []*flowerpb.Array) {
	for _, a := range list {
		p := &flowerpb.Array{Name: a.name, Data: make([]byte, 0, 4*len(a.data))}
		for _, n := range a.shape {
			p.Shape = append(p.Shape, int32(n))
		}
		for _, v := range a.data {
			p.Data = binary.LittleEndian.AppendUint32(p.Data, math.Float32bits(v))
		}
		sent = append(sent, p)
	}
	return sent
}

// unpack reads arrays that were sent. Their shapes fit their data, and all numbers are finite.
func unpack(sent []*flowerpb.Array) (list []array, err error) {
	for _, p := range sent {
		a := array{name: p.Name, data: make([]float32, 0, len(p.Data)/4)}
		count := 1
		for _, n := range p.Shape {
			if n < 1 || n > maxWidth {
				return nil, fmt.Errorf("array %s has a shape of %v", p.Name, p.Shape)
			}
			a.shape = append(a.shape, int(n))
			count *= int(n)
			if count > maxWidth*maxWidth {
				return nil, fmt.Errorf("array %s has a shape of %v, which is too large", p.Name, p.Shape)
			}
		}
		if len(p.Data) != 4*count {
			return nil, fmt.Errorf("array %s has a shape of %v and %d bytes", p.Name, p.Shape, len(p.Data))
		}
		for i := range count {
			v := math.Float32frombits(binary.LittleEndian.Uint32(p.Data[4*i:]))
			if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
				return nil, fmt.Errorf("array %s has numbers that are not finite", p.Name)
			}
			a.data = append(a.data, v)
		}
		list = append(list, a)
	}
	return list, nil
}
