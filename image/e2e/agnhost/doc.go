// Package agnhost is the image registry.k8s.io/e2e-test-images/agnhost: the one program with many
// sub-commands that Kubernetes' own end-to-end tests run in their pods, here as a [kit.Program].
//
// What it prints, serves and exits with is what the tests of Kubernetes look for; each sub-command
// is a file. A sub-command, or a flag of one, that cannot work without a kernel (SCTP) says so in
// one line and exits with 1.
//
// The image is Alpine based and has a shell with the usual tools, which its user passes in:
//
//	registry.Register(agnhost.Image(tools))
//	registry.Register(agnhost.Nautilus(tools))
package agnhost
