package lab_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/lab"
)

// A program that is aiopslab with an agent, an image and a problem more: "run quiet-detection-1 --agent yes" works in
// it, and so does "kubectl run greeter --image=example/greeter:v1".
func Example() {
	yes := agent.Entry{
		Name: "yes", Doc: "says of every system that something is wrong",
		New: func(agent.Briefing) (agent.Agent, error) { return agent.Script(agent.Call("submit", "Yes")), nil },
	}
	greet := func(ctx context.Context, env *kit.Env) error {
		fmt.Fprintln(env.Stdout, "hello")
		<-ctx.Done()
		return nil
	}
	greeter := kit.Image{
		Names: []string{"example/greeter"}, Tags: "v1", Entrypoint: []string{"greet"},
		Programs: map[string]kit.Program{"/bin/greet": greet}, Memory: 10 << 20,
	}
	quiet := `
id: quiet-{task}-1
title: nothing is wrong
app: hotel-reservation
load: {rate: 20}
tasks: [detection]
`
	lab.Main(lab.Parts{
		Agents:   []agent.Entry{yes},
		Images:   []kit.Image{greeter},
		Problems: fstest.MapFS{"quiet.yaml": {Data: []byte(quiet)}},
	})
}
