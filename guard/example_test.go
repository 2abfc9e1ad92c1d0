package guard_test

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/rest"

	"github.com/aiopslab/aiopslab/guard"
)

// A guard stands before an API server: whoever has its kubeconfig does not see what is hidden, and each
// of its writes is told of, with the object before and after.
func ExampleStart() {
	var upstream *rest.Config // the lab's own way to the API
	g, err := guard.Start(context.Background(), guard.Options{
		Upstream: upstream,
		Hide:     []guard.Rule{{Namespace: "grading"}, {Resource: "pods", Labels: "app=loadgen"}},
		Journal:  func(e guard.Entry) { fmt.Println(e.Verb, e.Resource, e.Namespace, e.Name, e.Status) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close()
	kubeconfig, err := g.Kubeconfig("shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := os.WriteFile("agent.kubeconfig", kubeconfig, 0o600); err != nil {
		fmt.Println(err)
	}
}
