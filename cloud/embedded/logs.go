package embedded

import (
	"flag"
	"io"
	"sync"

	"k8s.io/klog/v2"
)

// quietLogs keeps Kubernetes' own logs off the terminal: they tell of the lab, not of the cluster.
var quietLogs = sync.OnceFunc(func() {
	set := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(set)
	_ = set.Set("logtostderr", "false")
	_ = set.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
})
