// Package metricsserver serves metrics.k8s.io, which kubectl top and autoscalers read: the image
// registry.k8s.io/metrics-server/metrics-server.
//
// It is an aggregated API server in a pod. Unlike the original it keeps nothing: a request is
// answered from the nodes' own figures (the kubelet's /stats/summary), which are averaged over the
// last seconds, so an idle cluster pays nothing for it.
package metricsserver
