// Package aci is the agent-cloud interface: what an agent can do, told once and offered in every
// form an agent may want.
//
// An agent that answers in text writes one call in a fenced block; [Parse] reads it, and
// [Interface.Do] does it:
//
//	Action:
//	```
//	exec_shell("kubectl get pods -n test-hotel-reservation")
//	```
//
// An [Action] is a Go function with a struct of typed arguments. Its signature, its documentation
// for a prompt ([Docs]) and the schema of its arguments for function calling ([Action.Schema]) come
// from there. Positional and keyword arguments are bound by rule, and what is wrong with them is
// said in a line.
//
//	i, err := aci.New(aci.Options{Task: aci.Detection, App: hotel.App(), ...})
//	if err != nil {
//		return err
//	}
//	defer i.Close()
//	prompt := aci.Description(aci.Detection, hotel.App(), "") + aci.Instructions(aci.Detection)
//	r := i.Do(ctx, &aci.Call{Name: "get_alerts", Args: []any{"test-hotel-reservation"}})
//
// No output is longer than [MaxOutput]: what is left out is said, and kept in a file that the
// agent's shell can read. The shell is described in package aci/internal/box, the confinement of its
// programs in aci/tool.
package aci
