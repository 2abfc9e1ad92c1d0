// Package workload drives load through an application over HTTP and measures what its users get.
//
// Load is open-loop: requests are wanted at times that an arrival process gives, however slow the
// application is, and latency counts from the time a request was wanted. So a stall is seen in full
// by all the requests it delayed, and coordinated omission cannot happen. A request that could not
// be sent because too many were under way is counted as dropped and failed. Sessions of users who
// wait and think are there too, for those who want what Locust does.
//
// What is sent is data: a [Mix] of operations whose templates draw from a seed. The same [Spec] and
// seed give the same requests, wanted at the same times; only the texts that users write, and look
// for afterwards, are others each time, so that nobody can forge an answer ahead.
//
//	spec := workload.Spec{Mix: mix, Arrivals: &workload.Arrivals{Rate: workload.Constant(100)}}
//	g, err := workload.New(spec, workload.Target{BaseURL: "http://frontend:5000", DialContext: dial})
//	go g.Run(ctx)
//	...
//	sli := g.Snapshot().Window("10s").Total // rate, success ratio, quantiles
//	g.Stop()                                // no new requests; Run returns once the last one is answered
//
// The package knows nothing of Kubernetes: it is given a URL and a way to dial.
package workload
