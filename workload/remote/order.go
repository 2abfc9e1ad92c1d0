package remote

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/aiopslab/aiopslab/workload"
)

const (
	// MaxOrder is how many bytes an order may have. A Secret holds a mebibyte, and the token is in it, too.
	MaxOrder = 1<<20 - 4<<10
	// maxPlain is how many bytes an order may have when it is unpacked.
	maxPlain = 256 << 20
	// version is that of the format. An image that a node has kept may be older than who orders.
	version = 1
)

// Order is a load, and where it goes.
type Order struct {
	Spec    workload.Spec
	BaseURL string // as the process that sends the load reaches it
}

// packed is what an order looks like on its way.
type packed struct {
	Version int
	Order
}

// Pack is the order as the program reads it. It fails if the order is wrong, or longer than [MaxOrder].
func (o Order) Pack() ([]byte, error) {
	if err := o.Spec.Validate(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := errors.Join(json.NewEncoder(z).Encode(packed{version, o}), z.Close()); err != nil {
		return nil, err
	}
	if b.Len() > MaxOrder {
		return nil, fmt.Errorf("the load takes %d bytes, compressed, and a pod is given %d at most: replay a shorter "+
			"trace, or make a curve of it with 'aiopslab load fit'", b.Len(), MaxOrder)
	}
	return b.Bytes(), nil
}

// Unpack reads what Pack has made.
func Unpack(data []byte) (o Order, err error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return o, fmt.Errorf("the order: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxPlain+1))
	if err != nil {
		return o, fmt.Errorf("the order: %w", err)
	}
	if len(plain) > maxPlain {
		return o, fmt.Errorf("the order is longer than %d bytes", maxPlain)
	}
	// What is newer says so first: its fields may be others.
	var v struct{ Version int }
	if err := json.Unmarshal(plain, &v); err != nil {
		return o, fmt.Errorf("the order: %w", err)
	}
	if v.Version != version {
		return o, fmt.Errorf("the order is of version %d, and this image knows %d: build the images anew", v.Version,
			version)
	}
	var p packed
	d := json.NewDecoder(bytes.NewReader(plain))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return o, fmt.Errorf("the order: %w", err)
	}
	return p.Order, nil
}
