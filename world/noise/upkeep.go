package noise

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/record"
)

// How long it is until the first node is worked on, for how long it is, and how long until the next: between so
// much and twice that, drawn. The kubelet tells of a cordon within ten seconds.
const (
	upkeepFirst = 2 * time.Second
	upkeepTime  = 6 * time.Second
	upkeepCalm  = 40 * time.Second
	upkeepBusy  = 10 * time.Second
)

// upkeep is somebody who works on the nodes, one after the other: the node takes no new pods meanwhile.
type upkeep struct {
	*Life
	nodes    []string
	chance   *rand.Rand
	cordoned string // the node that is worked on
}

// newUpkeep knows the nodes of a cluster. One that is alone is left alone, and so are those of a cluster in which the
// lab is a guest.
func newUpkeep(ctx context.Context, l *Life) (*upkeep, error) {
	if l.Env.Guest {
		return &upkeep{Life: l, chance: l.draw(3)}, nil
	}
	list, err := l.Env.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	u := &upkeep{Life: l, chance: l.draw(3)}
	for _, n := range list.Items {
		if !n.Spec.Unschedulable {
			u.nodes = append(u.nodes, n.Name)
		}
	}
	return u, nil
}

// run works on nodes until the context ends.
func (u *upkeep) run(ctx context.Context) {
	if len(u.nodes) < 2 {
		return
	}
	pause := upkeepCalm
	if u.Level == Busy {
		pause = upkeepBusy
	}
	for wait := upkeepFirst; ; wait = pause {
		if u.wait(ctx, wait) != nil {
			return
		}
		u.cordon(ctx, u.nodes[u.chance.IntN(len(u.nodes))])
		if u.wait(ctx, upkeepTime) != nil {
			return
		}
		u.end(ctx)
	}
}

// wait waits for so long, or up to twice that.
func (u *upkeep) wait(ctx context.Context, least time.Duration) error {
	return until(ctx, time.Now().Add(least+time.Duration(u.chance.Int64N(int64(least)))))
}

// cordon keeps new pods from a node.
func (u *upkeep) cordon(ctx context.Context, node string) {
	if u.apply(ctx, node, &corev1.NodeSpec{Unschedulable: true}) {
		u.cordoned = node
		u.note(record.Change{What: "cordon", Node: node})
	}
}

// end takes the cordon back, if there is one.
func (u *upkeep) end(ctx context.Context) {
	if u.cordoned != "" && u.apply(ctx, u.cordoned, nil) {
		u.note(record.Change{What: "uncordon", Node: u.cordoned})
		u.cordoned = ""
	}
}

// apply sets what upkeep says of a node. By the rules of server-side apply it takes back no more than it has
// said: a cordon of somebody else's stays, and so does an uncordon. A change that fails is not made.
func (u *upkeep) apply(ctx context.Context, node string, spec *corev1.NodeSpec) bool {
	// One that is begun is finished, or nobody would know what was left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), calmTimeout)
	defer cancel()
	said := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]string{"name": node}}
	if spec != nil {
		said["spec"] = spec
	}
	data, err := json.Marshal(said)
	if err != nil {
		return false
	}
	_, err = u.Env.Client.CoreV1().Nodes().Patch(ctx, node, types.ApplyPatchType, data,
		metav1.PatchOptions{FieldManager: manifest.FieldManager, Force: ptr.To(true)})
	return err == nil
}
