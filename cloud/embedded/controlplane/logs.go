package controlplane

import (
	"fmt"
	"strings"
	"sync/atomic"

	"k8s.io/klog/v2"
)

// lastPlane is told when Kubernetes' own code gives up. The log is the process', and so are planes:
// there is one at a time.
var lastPlane atomic.Pointer[failure]

// captureLogs keeps Kubernetes' own logs off the terminal, because they tell of the lab and not of
// the cluster, and makes a fatal one break f down instead of ending the process.
func captureLogs(f *failure) {
	if lastPlane.Swap(f) != nil {
		return
	}
	// A logger of one's own, even one that drops everything, keeps the stacks of a fatal log away, too.
	klog.SetLoggerWithOptions(klog.Logger{}, klog.WriteKlogBuffer(fatalLog))
	klog.OsExit = func(int) { select {} } // fatalLog has told.
}

// fatalLog drops all but fatal logs.
func fatalLog(b []byte) {
	// "F0102 15:04:05.678901   12345 file.go:67] message"
	if header, message, ok := strings.Cut(string(b), "] "); ok && strings.HasPrefix(header, "F") {
		lastPlane.Load().fail(fmt.Errorf("kubernetes: %s", strings.TrimSpace(message)))
	}
}
