// Package chaos gives disturbances ([cloud.Disturbance]) effect on the pods of the embedded cloud:
// on the network between them and in their containers, where the API does not reach.
//
// An [Engine] follows pods and services through informers, so that a disturbance is bound to the
// pods that match now, whatever their names and addresses:
//
//	e := chaos.New(chaos.Config{Client: client, Network: network, Runtimes: runtimes})
//	err := e.Watch(factory)
//	factory.Start(ctx.Done())
//	stop, err := e.Disturb(ctx, cloud.Disturbance{...})
//
// Each disturbance has a goroutine, which brings the pods into line whenever one of them, or the
// disturbance's schedule, changes. Several of them add up, on the same pods too.
package chaos
