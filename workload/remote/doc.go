// Package remote is a load that runs somewhere else: a [workload.Generator] in a process of its own, which is told over
// HTTP to begin and to stop, and tells what its users got.
//
// The process is the program of [Image], in a pod beside the application. What it is to send, an [Order], and the token
// of who may ask it are files in [Dir]; they come from a Secret. It listens on loopback alone, where the API server's
// port-forward ends and no other pod can connect:
//
//	data, err := remote.Order{Spec: spec, BaseURL: "http://frontend.shop:5000"}.Pack()
//	... // a Secret with the data and a token, a pod that has it in Dir
//	c := remote.NewClient(dial, token)
//	defer c.Close()
//	s, err := c.Snapshot(ctx)
//
// A load that nobody asks for [Patience] ends by itself, with an error: whoever started it is dead. It never starts
// again, so what it has counted is either there or missing as a whole.
package remote
