package agent_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/agent"
)

// An agent is a function from what it observed to its next call. The entry makes one for each run.
func Example() {
	entry := agent.Entry{
		Name: "looker", Doc: "looks at the pods and says whether one crashes",
		New: func(agent.Briefing) (agent.Agent, error) {
			return agent.Func(func(_ context.Context, observation string) (string, error) {
				if strings.Contains(observation, "CrashLoopBackOff") {
					return agent.Call("submit", "Yes"), nil
				}
				return agent.Call("exec_shell", "kubectl get pods"), nil
			}), nil
		},
	}
	a, err := entry.New(agent.Briefing{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, observation := range []string{"Please take the next action", "geo-5f7d8   0/1   CrashLoopBackOff"} {
		response, err := a.Act(context.Background(), observation)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(response)
	}
	// Output:
	// ```
	// exec_shell("kubectl get pods")
	// ```
	// ```
	// submit("Yes")
	// ```
}
