// Package hierarchy is an agent that is a group: a maintainer for each service of the application, each with a mind
// and a loop of its own, who send each other messages over a queue. It follows Zhang et al., "The Vision of Autonomic
// Computing: Can LLMs Make It a Reality?" (2024), and works in its three ways: maintainers under a manager, who turns
// the goal into tasks; maintainers among themselves; and one maintainer alone.
//
// What a mind ([Mind]) is made of is open: rules, which need no model; a chat model; or another agent of the lab.
//
//	group ── chief (manager, speaker) ──┐
//	      ── member (maintainer) ───────┼── queue (messages, at least once)
//	      ── member (maintainer) ───────┘
//	                │
//	              floor: one call at a time, in the order in which they were asked for
//
// The whole group is one [agent.Agent]: each Act returns one call of one member. Limits of steps, time and cost are
// those of the run. Every text of a member may come from a model, so the group bounds how many messages a member
// sends, how long they are, how many rounds there are and how far a talk goes, and says itself who a message is from.
//
// A maintainer that dies is made anew and gets the message that it was working on again, with what it had done.
package hierarchy
