// Package sse reads the streams in which chat models answer.
package sse

import (
	"errors"
	"net/http"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/aiopslab/aiopslab/llm"
)

// errCut is the cause of a stream that ended before the reply did.
var errCut = errors.New("the stream was cut")

// Read calls f with the data of each event, until it says that the reply is complete or fails. A
// stream that ends before is a [llm.Failure] after which it may help to ask again.
func Read(res *http.Response, f func(data []byte) (done bool, err error)) error {
	d := ssestream.NewDecoder(res)
	defer d.Close()
	for d.Next() {
		if done, err := f(d.Event().Data); done || err != nil {
			return err
		}
	}
	cause := d.Err()
	if cause == nil {
		cause = errCut
	}
	return &llm.Failure{After: -1, Cause: cause}
}
