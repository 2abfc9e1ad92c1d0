// Package nonewprivs is the image registry.k8s.io/e2e-test-images/nonewprivs: a program that prints the user it
// runs as.
//
// In the real image the program is setuid root, so that its output shows whether a container may
// gain privileges. An image here cannot carry that bit; the program tells the user it was given,
// which is the right answer wherever privilege escalation is not allowed.
package nonewprivs
