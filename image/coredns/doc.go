// Package coredns is the cluster's DNS server: the image registry.k8s.io/coredns/coredns.
//
// It reads a Corefile and honours the part of it that clusters use: the kubernetes plug-in with
// CoreDNS' names (services, headless services, pods, reverse look-ups, SRV records), hosts, rewrite,
// template, forward, cache, log, errors, health, ready, prometheus and reload. So what goes wrong
// with a real cluster's DNS, an edit of its ConfigMap, a missing role, a dead pod, goes wrong here.
// There is no network to forward to; what would be forwarded fails.
package coredns
