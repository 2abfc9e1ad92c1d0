package problem_test

import (
	"fmt"
	"testing/fstest"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/problem"
)

// A document has one problem for each of its tasks. What is wrong with it is said with its line.
func ExampleLibrary_Parse() {
	shop := &app.App{
		Name: "shop", Namespace: "test-shop", Services: []app.Service{{Name: "cart", Kind: "service"}}, Mix: "shop",
		Mixes: fstest.MapFS{"shop.yaml": {Data: []byte("name: shop\noperations: [{name: buy, weight: 1, path: /}]")}},
	}
	library, err := problem.New([]*app.App{shop}, fault.Kinds())
	if err != nil {
		fmt.Println(err)
		return
	}
	document := `id: idle-{task}-1
title: nothing is wrong
app: shop
load: {rate: 10}
tasks: [detection]
`
	list, err := library.Parse("idle.yaml", []byte(document))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range list {
		fmt.Println(p.ID, p.Task, p.Anomaly())
	}
	_, err = library.Parse("idle.yaml", []byte(document+"laod: 3\n"))
	fmt.Println(err)
	// Output:
	// idle-detection-1 detection No
	// idle.yaml:6: unknown field "laod"; did you mean "load"?
}
