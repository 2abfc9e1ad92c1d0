package app_test

import (
	"fmt"

	"github.com/aiopslab/aiopslab/app"
)

// What the lab knows of an application is data: its parts, who calls whom, and where users go.
func ExampleApp() {
	a := &app.App{
		Name: "shop", Title: "Shop", Namespace: "test-shop", Description: "It sells things.",
		Operations: []string{"buy", "return"}, Frontend: app.Endpoint{Service: "frontend", Port: 8080},
		Services: []app.Service{
			{Name: "frontend", Kind: "service", Calls: []string{"cart"}}, {Name: "cart", Kind: "redis"},
		},
	}
	fmt.Print(a.Summary())
	cart, ok := a.Service("cart")
	fmt.Println(a.Host(), cart.Kind, ok)
	// Output:
	// Service Name: Shop
	// Namespace: test-shop
	// Description: It sells things.
	// Supported Operations:
	//   - buy
	//   - return
	// frontend.test-shop:8080 redis true
}
