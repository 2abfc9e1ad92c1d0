// Package dnsutils is the image registry.k8s.io/e2e-test-images/glibc-dns-testing: Debian with dig,
// host, nslookup and getent, to look names up the way most containers do.
//
//	registry.Register(dnsutils.Image(tools))
package dnsutils
