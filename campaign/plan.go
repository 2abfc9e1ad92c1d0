package campaign

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/campaign/local"
)

// MaxRuns is how many runs a campaign can have: an Indexed Job has no more indexes.
const MaxRuns = 100_000

// maxPlan is the size of a plan that a ConfigMap holds, with its other parts. Its limit is 1 MiB.
const maxPlan = 960 << 10

// Plan is the runs of a campaign. A run is known by its place in it.
type Plan struct {
	Runs []local.Run `json:"runs"`
	// Args are the arguments that `aiopslab run` has in each of them.
	Args []string `json:"args,omitempty"`
	// Telemetry says that the runs keep what their systems tell, which is gathered with their records.
	Telemetry bool `json:"telemetry,omitempty"`
	// Documents are those of problems that the image does not have, as YAML.
	Documents []string `json:"documents,omitempty"`
}

// Encode returns the plan as it is kept: compressed, and the same bytes for the same plan.
func (p *Plan) Encode() ([]byte, error) {
	if len(p.Runs) == 0 || len(p.Runs) > MaxRuns {
		return nil, fmt.Errorf("a campaign of %d runs; it has 1 at least and %d at most", len(p.Runs), MaxRuns)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if err := errors.Join(json.NewEncoder(w).Encode(p), w.Close()); err != nil {
		return nil, err
	}
	if b.Len() > maxPlan {
		return nil, fmt.Errorf("the list of %d runs, with the problems of your own, takes %d KiB, a ConfigMap has "+
			"room for %d", len(p.Runs), b.Len()>>10, maxPlan>>10)
	}
	return b.Bytes(), nil
}

// maxDecoded is how long the text of a plan may be.
const maxDecoded = 64 << 20

// DecodePlan reads a plan.
func DecodePlan(data []byte) (*Plan, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("the list of runs: %w", err)
	}
	p := &Plan{}
	if err := json.NewDecoder(io.LimitReader(r, maxDecoded)).Decode(p); err != nil {
		return nil, fmt.Errorf("the list of runs: %w", err)
	}
	if len(p.Runs) == 0 || len(p.Runs) > MaxRuns {
		return nil, fmt.Errorf("the list has %d runs", len(p.Runs))
	}
	return p, nil
}

// digest is short, and another for another plan.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:4])
}

// Digest tells the plan from others, in eight characters that a name can have.
func (p *Plan) Digest() (string, error) {
	data, err := p.Encode()
	return digest(data), err
}

// indexes are places in a plan, in order. As text they are "0-5,9".
type indexes []int

func (x indexes) String() string {
	var b strings.Builder
	for i := 0; i < len(x); {
		last := i
		for last+1 < len(x) && x[last+1] == x[last]+1 {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(x[i]))
		if last > i {
			b.WriteString("-" + strconv.Itoa(x[last]))
		}
		i = last + 1
	}
	return b.String()
}

// parseIndexes reads indexes that are below limit, each larger than the one before it.
func parseIndexes(text string, limit int) (indexes, error) {
	var list indexes
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && ranged {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last < first || last >= limit || len(list) > 0 && first <= list[len(list)-1] {
			return nil, fmt.Errorf("%q is no list of runs below %d", part, limit)
		}
		for i := first; i <= last; i++ {
			list = append(list, i)
		}
	}
	return list, nil
}
