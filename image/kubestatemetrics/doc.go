// Package kubestatemetrics is the image registry.k8s.io/kube-state-metrics/kube-state-metrics: the
// real kube-state-metrics, linked in, over the world of one container. It watches the API server
// and exposes the state of its objects as kube_* metrics.
//
// It takes the flags people use: --port, --telemetry-port, --host, --resources, --namespaces, and the
// lists of metrics, labels and annotations. Custom resources, sharding and TLS are left out.
package kubestatemetrics
