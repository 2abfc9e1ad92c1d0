// Package aci is the agent-cloud interface: what an agent can do, told once and offered in every
// form an agent may want.
//
// An agent that answers in text writes one call in a fenced block; [Parse] reads it:
//
//	Action:
//	```
//	exec_shell("kubectl get pods -n test-hotel-reservation")
//	```
package aci
