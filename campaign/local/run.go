package local

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"github.com/aiopslab/aiopslab/session"
)

// Run is the identity of a run: who works on what, with which seed. Agent and model are as on a command line.
type Run struct {
	Agent   string `json:"agent"`
	Model   string `json:"model,omitempty"`
	Problem string `json:"problem"`
	Seed    uint64 `json:"seed"`
}

func (r Run) String() string { return fmt.Sprintf("%s by %s with seed %d", r.Problem, r.Who(), r.Seed) }

// Contestant is an agent with its model, if it has one.
type Contestant struct{ Agent, Model string }

// Who is who works on it.
func (r Run) Who() Contestant { return Contestant{r.Agent, r.Model} }

func (c Contestant) String() string {
	if c.Model == "" {
		return c.Agent
	}
	return fmt.Sprintf("%s (%s)", c.Agent, c.Model)
}

// Cross has every contestant try every problem so often, each time with the next seed. Those who try the same stand
// together, and the first attempts come first: a campaign that is stopped early has whole pairs.
func Cross(who []Contestant, problems []string, seed uint64, attempts int) []Run {
	var runs []Run
	for i := range attempts {
		for _, p := range problems {
			for _, c := range who {
				runs = append(runs, Run{Agent: c.Agent, Model: c.Model, Problem: p, Seed: seed + uint64(i)})
			}
		}
	}
	return runs
}

// key tells the run from others, in the names of its files.
func (r Run) key() string { return digest(r) }

// Digest tells runs with their settings from others, in a few characters that a name can have.
func Digest(runs []Run, settings []string) string {
	return digest(struct {
		Runs     []Run
		Settings []string
	}{runs, settings})[:8]
}

func digest(v any) string {
	b, _ := json.Marshal(v) // Texts and numbers always can be.
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// Result is how a try of a run ended.
type Result struct {
	Run
	Class   session.Class
	Why     string
	Record  string  // file
	Seconds float64 // from the record's first line to its last
	Cost    float64 // of its model, in dollars; 0 if it is not known
	Tries   int     // of the run so far that say nothing of the agent, this one included if it is one
	Kept    bool    // it is of an earlier campaign in this folder
	Again   bool    // the run will be tried again

	partial bool // somebody has removed the session file
	ended   time.Time
}

// Counts reports whether the result says something of the agent.
func (r *Result) Counts() bool { return r.Class == session.Solved || r.Class == session.AgentFailed }

// passing reports whether another try may end otherwise, by nobody's doing.
func (r *Result) passing() bool { return r.Class == session.Infra || r.Class == session.Inconclusive }

// recordName is the name of a record in the folder: the id of the try, and the key of its run.
var recordName = regexp.MustCompile(`^(.+)-([0-9a-f]{16})\.jsonl$`)

// keyOf is the key in the name of a record, or "".
func keyOf(file string) string {
	if m := recordName.FindStringSubmatch(filepath.Base(file)); m != nil {
		return m[2]
	}
	return ""
}
