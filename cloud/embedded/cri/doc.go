// Package cri is a container runtime without a kernel: it implements the Container Runtime
// Interface that the kubelet's code drives, and runs each container as Go functions
// ([kit.Program]) over files ([vfs]) and a network ([vnet]) in memory.
//
// A [Runtime] is the runtime of one node. A sandbox is a pod's network namespace; a container has a
// root file system grafted from its image, processes, a log, and a control group that meters the
// CPU time and memory its programs state. Statuses, reasons and messages are containerd's.
//
// Streaming (exec, attach, port-forward) and statistics are plain methods instead of the CRI's
// URLs, because their only user is in the same process.
package cri
