package cri

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var errInterrupted = status.Error(codes.Canceled, "the runtime was interrupted")

// Interrupt ends all calls that wait for a container or a command, with an error and without hurting either. A
// kubelet that stops lets go of its calls this way. Resume undoes it.
func (r *Runtime) Interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !isClosed(r.interrupted) {
		close(r.interrupted)
	}
}

// Resume lets calls wait again.
func (r *Runtime) Resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if isClosed(r.interrupted) {
		r.interrupted = make(chan struct{})
	}
}

func (r *Runtime) interruption() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.interrupted
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
