package noise

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// harmless are settings of custom resources, by kind, that change the specification, and neither what their operator
// makes of it nor what users get. A kind that is not here is written again with the mark of a release alone, and keeps
// its generation.
var harmless = map[string]struct {
	path  []string
	value func(n uint64) any
}{
	// For how long TiDB Operator waits for leaders to leave a server of TiKV that it is about to restart.
	"TidbCluster": {
		[]string{"spec", "tikv", "evictLeaderTimeout"},
		func(n uint64) any { return fmt.Sprintf("%dm", 20+n%100) },
	},
}

// differ gives the specification of an object, whose pods a release does not replace, a difference that makes none:
// its generation says nothing then. New pods of a StatefulSet or a DaemonSet are to be ready for some seconds more
// before they count as available: it is one of few settings that may be changed, and there are no new pods.
func (l *Life) differ(u *unstructured.Unstructured) {
	n, err := strconv.ParseUint(l.build, 16, 64)
	if err != nil {
		return
	}
	switch kind := u.GetKind(); kind {
	case "StatefulSet", "DaemonSet":
		now, _, _ := unstructured.NestedInt64(u.Object, "spec", "minReadySeconds")
		_ = unstructured.SetNestedField(u.Object, now+1+int64(n%3), "spec", "minReadySeconds")
	default:
		if h, ok := harmless[kind]; ok {
			_ = unstructured.SetNestedField(u.Object, h.value(n), h.path...)
		}
	}
}
