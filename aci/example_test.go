package aci_test

import (
	"fmt"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/problem"
)

// What an agent writes has one call in it. Whoever writes none is told so, in words for the agent.
func ExampleParse() {
	call, err := aci.Parse("I look at the logs of geo first.\n```\nget_logs(\"test-hotel-reservation\", \"geo\")\n```")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(call.Name, call.Args)
	_, err = aci.Parse("```\nsubmit(Yes\n```")
	fmt.Println(err != nil)
	// Output:
	// get_logs [test-hotel-reservation geo]
	// true
}

// The actions of a task are the same for every surface: prompt, JSON schema, MCP and HTTP.
func ExampleActions() {
	for _, a := range aci.Actions(string(problem.Detection)) {
		fmt.Println(a.Name, a.Kind)
	}
	// Output:
	// get_logs read
	// get_metrics read
	// read_metrics read
	// get_traces read
	// read_traces read
	// get_alerts read
	// get_topology read
	// exec_shell write
	// begin write
	// commit write
	// abort write
	// undo write
	// history read
	// submit submit
}
