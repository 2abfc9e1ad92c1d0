package fault

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Naming is an optional power of a [Fault]: what is broken has names that nobody can know before, because they are
// drawn when it is made.
type Naming interface {
	// Names returns such names by the service that they stand for. They are known once the fault is injected.
	Names() map[string][]string
}

// NamesOf are the drawn names of what an injected fault has broken, by service.
func NamesOf(f Fault) map[string][]string {
	if n, ok := f.(Naming); ok {
		return n.Names()
	}
	return nil
}

var (
	_ Naming = (*unbound)(nil)
	_ Naming = (*disturbed)(nil)
)

// Names implements [Naming]: a volume stands for the server whose it was, as its claim does.
func (f *unbound) Names() map[string][]string {
	names := map[string][]string{}
	for _, s := range f.servers {
		for _, claim := range f.parts.claims(s) {
			if pv := f.volumes[claim]; pv != nil {
				names[s] = append(names[s], pv.Name)
			}
		}
	}
	return names
}

// Names implements [Naming]: of a disk, its claims and volumes.
func (f *disturbed) Names() map[string][]string {
	if len(f.volumes) == 0 {
		return nil
	}
	return map[string][]string{f.target: f.volumes}
}

// storageOf are the claims of a service that there are, and their volumes.
func storageOf(ctx context.Context, e *Env, service string) (names []string, err error) {
	o, err := read(e.App)
	if err != nil {
		return nil, err
	}
	for _, claim := range o.claims(service) {
		pvc, err := e.Client.CoreV1().PersistentVolumeClaims(e.App.Namespace).Get(ctx, claim, metav1.GetOptions{})
		if ignoreNotFound(err) != nil {
			return nil, fmt.Errorf("read the claim %s: %w", claim, err)
		}
		if err == nil {
			names = append(names, claim)
			if pvc.Spec.VolumeName != "" {
				names = append(names, pvc.Spec.VolumeName)
			}
		}
	}
	return names, nil
}
