// Package pause is the image registry.k8s.io/pause: a program that waits until it is told to stop.
// Kubernetes runs one in every pod; tests and problems use it where a pod has nothing to do.
//
//	registry.Register(pause.Image())
package pause
