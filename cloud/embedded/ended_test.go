package embedded

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/node"
)

// TestOneThatEnded holds that a container which was started again while it was deployed has one before it, as on any
// node: that of its past takes the place of the one that it had.
func TestOneThatEnded(t *testing.T) {
	state := func(id, name string, restarts uint32, state runtimeapi.ContainerState) cri.ContainerState {
		config, err := proto.Marshal(&runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: restarts}, LogPath: name + "/0.log",
		})
		if err != nil {
			t.Fatal(err)
		}
		return cri.ContainerState{ID: id, Sandbox: "pod", Config: config, State: state}
	}
	const exited, running = runtimeapi.ContainerState_CONTAINER_EXITED, runtimeapi.ContainerState_CONTAINER_RUNNING
	s := &node.State{Runtime: cri.State{Containers: []cri.ContainerState{
		state("real", "order", 1, exited), state("now", "order", 2, running), state("other", "proxy", 0, exited),
	}}}
	err := addEnded(s, &cloud.Machine{Containers: []*cloud.Container{
		{ID: "told", Like: "now", Restarts: 1, Finished: time.Now()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range s.Runtime.Containers {
		got = append(got, c.ID)
	}
	if len(got) != 3 || got[0] != "now" || got[1] != "other" || got[2] != "told" {
		t.Errorf("there are %v, want now, other, told", got)
	}
}
