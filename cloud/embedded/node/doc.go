// Package node runs the nodes of an embedded cluster: what the kubelet does on a real one.
//
// The decisions of a pod's life are the kubelet's own code: which container to start, restart or
// kill and when, image pulls and their back-off, lifecycle hooks, termination order, conditions and
// the status that is reported (k8s.io/kubernetes/pkg/kubelet/kuberuntime, .../status). It drives the
// runtime of package cri. Ours is what ties it together without a kernel or a disk: one worker per
// pod, volumes and environment over files in memory, probes over the cluster's network, the node's
// registration and pressure, and the kubelet's HTTPS API.
//
// A [Fleet] is all nodes of a cluster. They share one set of watches. The kubelets of a fleet can be
// stopped and started while containers go on, as on a real node, and the fleet's containers and
// volumes can be saved and restored.
package node
