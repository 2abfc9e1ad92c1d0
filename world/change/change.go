// Package change makes the changes that teams make from one release of a service to the next: a variable, a tag, a
// limit, a selector. None of them makes a difference to users, and they are of the kinds that mistakes are of, too. So
// what was changed last, and how, does not tell where a mistake is.
//
//	w := change.World{Namespace: "shop", Services: []string{"cart", "redis"}}
//	w.Release(r, template, 0)
//
// What is drawn depends on the random numbers, the template and the world alone.
package change

import "math/rand/v2"

// Most is how many differences a release has, at most.
const Most = 3

// World is what one must know to tell that a change makes no difference.
type World struct {
	Namespace string
	Services  []string // the namespace's Services, by name
	// OtherImage returns another image that does what this one does; "" if there is none. It may be nil.
	OtherImage func(image string) string
	// Program returns the path of a program that an image finds by its name; "" if that is not known. It may be nil.
	Program func(image, name string) string
	// Tight says that nobody knows whether there is room for more: requests and limits are not raised.
	Tight bool
}

// kind is a way in which two releases differ.
type kind struct {
	name   string
	weight int
	// change makes the difference in the template of a pod. It reports false if there is nothing to make it of.
	change func(w *World, r *rand.Rand, template map[string]any) bool
}

// kinds are all ways. Those that mistakes are made in come up most: what is rare is not to be suspicious.
func kinds() []kind {
	return []kind{
		{"variable", 2, addVariable},
		{"address", 4, spellAddress},
		{"image", 4, otherImage},
		{"command", 4, spellCommand},
		{"node selector", 4, selectNodes},
		{"request", 2, setRequest},
		{"limit", 2, setLimit},
		{"probe", 2, setProbe},
		{"grace period", 1, setGracePeriod},
		{"annotation", 1, addAnnotation},
		{"affinity", 1, addAffinity},
		{"toleration", 1, addToleration},
		{"group", 1, addGroup},
	}
}

// Release changes the template of a pod in one to [Most] ways, less those in which it was changed already, and returns
// which. There may be fewer ways to change it.
func (w *World) Release(r *rand.Rand, template map[string]any, already int) (changed []string) {
	n := 1 + r.IntN(Most) - already
	for all := kinds(); len(changed) < n && len(all) > 0; {
		i := draw(r, all)
		if all[i].change(w, r, template) {
			changed = append(changed, all[i].name)
		}
		all = append(all[:i], all[i+1:]...)
	}
	return changed
}

// draw draws one of the kinds by their weights.
func draw(r *rand.Rand, all []kind) int {
	sum := 0
	for _, k := range all {
		sum += k.weight
	}
	at := r.IntN(sum)
	for i, k := range all {
		if at -= k.weight; at < 0 {
			return i
		}
	}
	return len(all) - 1
}
