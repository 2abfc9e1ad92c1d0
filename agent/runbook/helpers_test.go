package runbook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell"
)

// Pods that somebody asked for by scaling or by a release were not lost and made anew.
func TestRecent(t *testing.T) {
	now := time.Now().UTC()
	var items []string
	event := func(reason, kind, of, message string, count int, ago time.Duration) {
		items = append(items, fmt.Sprintf(
			`{"reason": %q, "involvedObject": {"kind": %q, "name": %q}, "message": %q, "count": %d, "lastTimestamp": %q}`,
			reason, kind, of, message, count, now.Add(-ago).Format(time.RFC3339)))
	}
	made := func(set string, count int, ago time.Duration) {
		event("SuccessfulCreate", "ReplicaSet", set, "Created pod: "+set+"-abcde", count, ago)
	}
	scaled := func(of, message string, count int) {
		event("ScalingReplicaSet", "Deployment", of, message, count, time.Second)
	}
	made("user-1", 1, time.Second) // Scaled up and down and up again.
	made("user-1", 4, time.Minute)
	scaled("user", "Scaled up replica set user-1 from 1 to 2", 5)
	scaled("user", "Scaled down replica set user-1 from 2 to 1", 5)
	made("geo-2", 2, time.Second) // A release.
	scaled("geo", "Scaled up replica set geo-2 from 0 to 2", 1)
	made("rate-1", 3, time.Second) // Somebody does away with them.
	made("rate-1", 1, time.Second)
	scaled("rate", "Scaled up replica set rate-1 from 1 to 2", 1)
	made("old-1", 9, 4*time.Minute)
	event("SuccessfulCreate", "StatefulSet", "store", "create Pod store-0 in StatefulSet store successful", 3, time.Second)

	s := shell.NewSession(kit.HostEnv())
	defer s.Close()
	var out strings.Builder
	in := strings.NewReader(`{"items": [` + strings.Join(items, ",") + `]}`)
	s.Run(t.Context(), helpers+"\nrecent", in, &out, &out)
	if diff := cmp.Diff("created rate-1 3\ncreated store 3\n", out.String()); diff != "" {
		t.Error(diff)
	}
}
