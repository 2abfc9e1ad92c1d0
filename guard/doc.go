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
//     tables, discovery, OpenAPI documents and a kubelet's metrics, and so are events and bindings that
//     refer to it. Nobody's managed fields can be seen, because they tell who touched an object and
//     when, nor can the API server's own metrics, which tell how often.
//   - Every write is in the journal, with the object before and after it.
//
// Everything else is as the API server says it. Objects travel as JSON, also to clients that would
// rather have protobuf.
//
// # Ways around it
//
// An agent can do in the cluster what an administrator can. It can make service accounts and bind
// them to any role, have tokens and certificates made, give rights to those without credentials, run
// commands in pods, create pods, and dial into the cluster's network. With each it could come to the
// API server by another way than its own door. So the guard stands there, too, where the cloud has
// the power to put it there: [Guard.Network] answers all that reaches the API server over a wire, be
// it from a pod, from the agent's shell, from the machine, or from the API server itself where its
// proxy, a webhook or an APIService sends a request; [Guard.Kubelet] answers before the kubelets.
//
//   - Who comes over the wire brings credentials: a token, a certificate or none. They are passed on,
//     so the API server decides who that is and what they may. Rights that an agent hands on are never
//     more than its own, because it has all that there are behind the guard.
//   - Headers by which one acts for somebody else, Impersonate-* and X-Remote-*, are refused or taken
//     out, whoever sends them.
//   - What is hidden from the agent is hidden from everyone who comes this way. Prometheus, cluster DNS
//     and the like read what they need: they look for what serves the application.
//   - Each write that comes this way is in the journal, with the user and the address that it came
//     from. Nothing that the lab installs writes by this way, so it is the agent's doing.
//   - Of a kubelet its metrics can be read, and the logs of the node's services, without what is hidden.
//     Its exec, run, configuration and the logs of containers cannot: the API server's exec and logs do
//     that, and pass the guard.
//
// The control plane's own loops, the kubelets and the lab call the API server inside the process. An
// agent has no part in those calls, with two exceptions that are the same in any cluster: it can
// register webhooks and policies, which see and change writes, and APIServices, which send requests
// for an API elsewhere. Neither has effect on the lab: it uses a way of its own, see
// [github.com/aiopslab/aiopslab/cloud.Director], and so does the guard for what it wants to know. And
// the APIServices of the API server's own APIs cannot be changed.
package guard
