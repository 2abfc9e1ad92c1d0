// Package controlplane runs a real Kubernetes control plane inside the process: etcd,
// kube-apiserver with its aggregator and CRD server, the controllers of kube-controller-manager and
// the scheduler, linked as libraries.
//
// What an API client can see is stock. What differs from the stock binaries is how the parts are
// joined, because they share a process and a throw-away life:
//
//   - etcd does not fsync, ticks every 50 ms so that its single member elects itself soon, and is
//     called directly instead of over gRPC;
//   - keys are ECDSA; the API server's own clients, the controllers and the scheduler call its
//     handler directly instead of over TLS;
//   - default RBAC and priority classes are written at once by us, where the stock hooks poll with a
//     leading second of sleep;
//   - OpenAPI documents of built-in groups are built when somebody asks for them, from definitions
//     that are data instead of code.
//
// Kubernetes keeps process-global state (feature gates, metrics), so a process holds one [Plane].
//
// The loops (controllers and scheduler) can be stopped and started while the API server stays up,
// which is how [Plane.Restore] rewrites the cluster's state under it without a race.
package controlplane
