// Package embedded is a Kubernetes cluster inside the process: no Docker, no root, no kernel
// features, one listener on loopback.
//
// The control plane is real (package controlplane). Nodes (package node) run the kubelet's own code
// over a container runtime (package cri) in which a container is a Go function, its files are in
// memory (package vfs) and so is the wire between containers (package vnet), with services (package
// kubeproxy), network policies (package netpolicy) and volumes (package provisioner) as on a real
// cluster. Cluster DNS and metrics-server are pods.
//
// A process holds one [Cloud] at a time, because Kubernetes keeps process-global state.
package embedded
