package workload_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"

	"github.com/aiopslab/aiopslab/workload"
)

// From one seed come the same requests, at the same times.
func ExampleSpec_Plan() {
	mix, err := workload.ParseMix("shop.yaml", []byte("name: shop\noperations: [{name: buy, weight: 1, path: '/buy/{{int 1 9}}'}]"))
	if err != nil {
		fmt.Println(err)
		return
	}
	spec := workload.Spec{
		Mix: mix, Arrivals: &workload.Arrivals{Rate: workload.Constant(10), Process: workload.Even}, Seed: 7,
	}
	plan, err := spec.Plan(3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range plan {
		fmt.Println(r.At, r.Operation, r.Path)
	}
	// Output:
	// 100ms buy /buy/7
	// 200ms buy /buy/1
	// 300ms buy /buy/3
}

// A load runs until it is stopped, and tells how its users fare.
func ExampleGenerator() {
	shop := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer shop.Close()
	mix, err := workload.ParseMix("shop.yaml", []byte("name: shop\noperations: [{name: buy, weight: 1, path: /buy}]"))
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := workload.New(workload.Spec{
		Mix: mix, Arrivals: &workload.Arrivals{Rate: workload.Constant(100)},
	}, workload.Target{BaseURL: shop.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error)
	go func() { done <- g.Run(context.Background()) }()
	for g.Snapshot().Window("whole").Total.Requests == 0 {
		runtime.Gosched() // It goes on for as long as one likes.
	}
	g.Stop()
	fmt.Println(<-done, g.Snapshot().Window("whole").Total.Success)
	// Output:
	// <nil> 1
}
