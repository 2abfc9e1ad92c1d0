package record_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/aiopslab/aiopslab/record"
)

// A run is a log of events, of which everything else is a function.
func Example() {
	dir, err := os.MkdirTemp("", "record-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "1.jsonl")
	log, err := record.Create(file, record.Run{ID: "1", Agent: "mine"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = log.Append(record.StepEvent, record.Step{Number: 1, Action: "exec_shell", Observation: "all is well"})
	if err := log.Close(); err != nil { // It tells of a write that failed, too.
		fmt.Println(err)
		return
	}
	run, err := record.Read(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range run.Events {
		var s record.Step
		if err := e.Decode(&s); err == nil {
			fmt.Println(run.Agent, e.Seq, e.Kind, s.Action, s.Observation)
		}
	}
	// Output:
	// mine 1 step exec_shell all is well
}
