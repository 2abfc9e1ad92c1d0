// Package stratus is an agent after Chen et al., "STRATUS: A Multi-agent System for Autonomous Reliability Engineering
// of Modern Clouds" (2025): agents for detection, diagnosis, mitigation and undo, of which only the last two write,
// under a state machine that owns the flow.
//
//	detect -> diagnose -> mitigate -> validate -> done
//	                         ^           | the oracles object
//	                         +- reflect <- undo
//
// A mitigation is a transaction, where the lab has them: it is committed if the oracles of the agent (alerts, users by
// their metrics, cluster state) find the system well and its severity has not risen, and taken back otherwise, after
// the last try as well. Who plans is a model, if the run has one, or else the rules of package runbook.
package stratus
