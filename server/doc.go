// Package server is the lab over HTTP: sessions whose agent is the caller, agents that are run on
// demand, environments for training, and AIOpsLab's own endpoints.
//
// A process holds one environment at most, so there are two halves. A [Front] is what callers talk
// to: it checks who they are and what they ask for, starts a worker for each session or environment,
// and passes requests on. A [Worker] is the other end, in a process of its own; it runs what it is
// told to on a [Backend]. A worker that dies takes only its own session with it.
//
//	front := server.NewFront(server.Options{Workers: processes, Agents: names, MaxSessions: 16})
//	err := http.Serve(listener, front)
//
// While an agent works, nothing here tells it the answer: the id of its problem, which names the
// fault, and the events that tell of the fault come after the verdict.
package server
