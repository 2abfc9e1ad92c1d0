// Package kit is what an application is written against: a program is a [Program], a function
// that gets its whole world, arguments, files, network, CPU and memory, in an [Env].
//
// In the embedded cloud a container is such a function in the lab's own process, over files and a
// network in memory. On a real cluster the same function is an ordinary process over [HostEnv]. So
// an application is written once. It must not use package os, net.Dial or net.Listen itself, and
// must return soon after its context ends.
//
//	func serve(ctx context.Context, env *kit.Env) error {
//		ln, err := env.Net.Listen("tcp", ":8080")
//		if err != nil {
//			return err
//		}
//		srv := &http.Server{Handler: hello}
//		context.AfterFunc(ctx, func() { srv.Close() })
//		return kit.IgnoreClosed(srv.Serve(ln))
//	}
//
// An [Image] names such programs; a [Registry] is the set of images a cloud can run. Package kit
// knows nothing of clouds and imports no other package of this module.
package kit
