package local

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// maxVerdict is how long the last line of a record may be.
const maxVerdict = 16 << 20

// errUnfinished says that a record does not end with a verdict.
var errUnfinished = errors.New("the record does not end with a verdict")

// readResult reads how a run ended, from the first line of its record and the last: records are long, and a campaign
// has thousands.
func readResult(file string) (*Result, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var begun struct {
		Time time.Time `json:"time"`
	}
	first, err := bufio.NewReader(f).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(first, &begun)
	}
	var last []byte
	if err == nil {
		last, err = lastLine(f)
	}
	var e record.Event
	if err != nil || json.Unmarshal(last, &e) != nil || e.Kind != record.VerdictEvent {
		return nil, fmt.Errorf("%s: %w", file, errUnfinished)
	}
	var v session.Verdict
	if err := e.Decode(&v); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r := &Result{
		Class: v.Class, Why: v.Why, Record: file, Seconds: e.Time.Sub(begun.Time).Seconds(), ended: e.Time,
	}
	r.Cost, _ = v.Results["cost_usd"].(float64)
	return r, nil
}

// lastLine is the last line of a file that ends with the end of a line.
func lastLine(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	end := info.Size()
	for length := int64(64 << 10); ; length *= 4 {
		from := max(0, end-length)
		b := make([]byte, end-from)
		if _, err := f.ReadAt(b, from); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		line, whole := bytes.CutSuffix(b, []byte("\n"))
		if !whole {
			return nil, errUnfinished
		}
		if i := bytes.LastIndexByte(line, '\n'); i >= 0 {
			return line[i+1:], nil
		}
		if from == 0 || length > maxVerdict {
			return nil, errUnfinished
		}
	}
}
