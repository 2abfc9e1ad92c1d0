package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// room is what is free on a node.
type room struct {
	amount
	pods int64
}

// rooms are what is free on the nodes that take pods.
func (e *examination) rooms() []room {
	rooms := map[string]*room{}
	for _, n := range e.nodes {
		if takesPods(&n) {
			rooms[n.Name] = &room{amountOf(n.Status.Allocatable), n.Status.Allocatable.Pods().Value()}
		}
	}
	for _, p := range e.pods {
		if r := rooms[p.Spec.NodeName]; r != nil {
			r.add(requests(&p.Spec), -1)
			r.pods--
		}
	}
	var list []room
	for _, r := range rooms {
		list = append(list, *r)
	}
	return list
}

func takesPods(n *v1.Node) bool {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
	closed := slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool {
		return t.Effect == v1.TaintEffectNoSchedule || t.Effect == v1.TaintEffectNoExecute
	})
	return ready && !closed && !n.Spec.Unschedulable
}

// capacity looks whether what is needed fits: the biggest pods first, each on the node with the most room, as the
// scheduler mostly does.
func (e *examination) capacity(context.Context) Finding {
	const check = "capacity"
	if e.nodes == nil {
		return Finding{}
	}
	rooms := e.rooms()
	if len(rooms) == 0 {
		return Finding{
			check, Problem, fmt.Sprintf("none of %s takes pods", count(len(e.nodes), "node")),
			"Look at 'kubectl get nodes': they are not ready, cordoned or tainted.",
		}
	}
	var free, asked amount
	for i := range rooms {
		free.add(rooms[i].amount, 1)
		for _, d := range e.demand.daemon {
			rooms[i].add(d, -1)
			rooms[i].pods--
		}
	}
	left := 0
	for _, p := range e.demand.pods {
		asked.add(p, 1)
		slices.SortFunc(rooms, func(a, b room) int { return cmp.Compare(b.cpu, a.cpu) })
		if i := slices.IndexFunc(rooms, func(r room) bool { return p.fits(r.amount) && r.pods > 0 }); i >= 0 {
			rooms[i].add(p, -1)
			rooms[i].pods--
			continue
		}
		left++
	}
	pods, nodes := count(len(e.demand.pods), "pod"), count(len(rooms), "node")
	if left > 0 {
		return Finding{
			check, Problem, fmt.Sprintf("%d of %s would be pending: together they request %v, and %v are free on %s",
				left, pods, asked, free, nodes),
			"Make room, add a node, or choose a smaller application with --app.",
		}
	}
	return Finding{check, OK, fmt.Sprintf("%s request %v, and %v are free on %s", pods, asked, free, nodes), ""}
}
