package fault_test

import (
	"fmt"
	"testing/fstest"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
)

const cart = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart}
spec:
  replicas: 2
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: cart, image: "example/cart:v1"}]}
`

// A kind of fault is found by its name. Bound to a target it can be injected, and there is a reference
// solution: what an operator would type.
func ExampleFind() {
	kind, err := fault.Find(fault.Kinds(), "scale_pods_to_zero")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(kind.Title)
	shop := &app.App{
		Name: "shop", Namespace: "test-shop", Label: "app", Services: []app.Service{{Name: "cart", Kind: "service"}},
		Manifests: fstest.MapFS{"cart.yaml": {Data: []byte(cart)}},
	}
	commands, err := kind.Fix(fault.Target{App: shop, Service: "cart"}, nil)
	fmt.Println(commands[0], err)
	_, err = kind.New(fault.Target{App: shop, Service: "card"}, nil)
	fmt.Println(err)
	_, err = fault.Find(fault.Kinds(), "scale_pod_to_zero")
	fmt.Println(err)
	// Output:
	// A Deployment is scaled to zero
	// kubectl scale deployment/cart --replicas=2 <nil>
	// scale_pods_to_zero cannot go to "card" of shop; did you mean "cart"?
	// there is no fault "scale_pod_to_zero"; did you mean "scale_pods_to_zero"?
}
