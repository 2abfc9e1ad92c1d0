// Package runbook is the agent that works as an operator's runbook says: it has no language model
// and is not told the answer. It looks at alerts, pods, configuration, metrics, connections, logs and
// traces through the same interface as any agent, notes what is wrong and where, takes what lies
// deepest for the cause, and repairs what such a runbook can repair.
//
// It knows what an operator knows of Kubernetes, MongoDB, gRPC and HTTP in general. It knows nothing
// of the catalog and no service by name.
//
// The investigation is sequential code (investigate.go) that looks through a [console], one call
// after another. What it sees goes into a [system], rules turn that into findings, and [conclude]
// says which of them are causes. An observation may be cut off, an error or nonsense: whatever cannot
// be read is as if it were not there.
package runbook
