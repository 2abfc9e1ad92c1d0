// Package guard is the one door between an agent and a cluster: a reverse proxy in front of the
// Kubernetes API for the agent's kubectl, helm and any other client.
//
//	g, err := guard.Start(ctx, guard.Options{
//		Upstream: cloud.RESTConfig(),
//		Journal:  func(e guard.Entry) { log.Append("write", e) },
//	})
//	if err != nil {
//		return err
//	}
//	defer g.Close()
//	kubeconfig, err := g.Kubeconfig("test-hotel-reservation")
//
// What always holds:
//
//   - The agent has a token of the guard's, and an identity of its own in the cluster. It never holds
//     the lab's credentials, and cannot act as somebody else.
//   - What a [Rule] hides cannot be found, used or changed: it is absent from objects, lists, watches,
//     tables, discovery, OpenAPI documents and metrics, and so are events and bindings that refer to
//     it. Nobody's managed fields can be seen, because they tell who touched an object and when.
//   - Every write is in the journal, with the object before and after it.
//
// Everything else is as the API server says it. Objects travel as JSON, also to clients that would
// rather have protobuf.
package guard
