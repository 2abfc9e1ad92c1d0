// Package agnhost is the image registry.k8s.io/e2e-test-images/agnhost: one program with many
// sub-commands, which Kubernetes' end-to-end tests run in their pods.
//
// It has the sub-commands, flags and paths that the conformance specs and this repository's own tests
// use, and no others. The specs decide what has to be the same as in the original: names, ports, the form of
// answers, and the few texts they search for. Such a text is marked where it stands; all other words
// are ours. SCTP needs a kernel, so whatever asks for it gets one line that says so and exit code 1.
//
// The image has a shell with the usual tools, which its user passes in:
//
//	registry.Register(agnhost.Image(tools))
//	registry.Register(agnhost.Nautilus(tools))
package agnhost
