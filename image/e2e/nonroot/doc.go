// Package nonroot is the image registry.k8s.io/e2e-test-images/nonroot: tools to run as a user that
// is not root by default.
//
//	registry.Register(nonroot.Image(tools))
package nonroot
