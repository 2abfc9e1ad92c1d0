package tidboperator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
)

// syncer makes what there is into what a TidbCluster says. It is used by one goroutine.
type syncer struct {
	client kubernetes.Interface
	driver driver
	events record.EventRecorder
	// cached reads, so that a look costs the API server nothing
	get reads
	now func() time.Time

	auto    bool                     // who has failed for long is replaced
	periods map[string]time.Duration // how long that is, by component

	evictions map[string]eviction // of clusters, by name; one without is not known yet
}

// reads are the objects as they were last seen. One that is not there is nil.
type reads interface {
	service(namespace, name string) (*v1.Service, error)
	configMap(namespace, name string) (*v1.ConfigMap, error)
	statefulSet(namespace, name string) (*appsv1.StatefulSet, error)
	claim(namespace, name string) (*v1.PersistentVolumeClaim, error)
	pod(namespace, name string) (*v1.Pod, error)
}

// errWait says that something must be done first.
type errWait string

func (e errWait) Error() string { return string(e) }

// errSoon says that something must be done first which takes a second or two.
type errSoon string

func (e errSoon) Error() string { return string(e) }

// errStale says that something has changed since it was read.
var errStale = errors.New("the object has been modified; try again")

// sync does the next steps, and says what of the components is as it should be.
func (s *syncer) sync(ctx context.Context, c *cluster) (synced map[string]bool, err error) {
	var errs []error
	for _, want := range c.services() {
		errs = append(errs, s.applyService(ctx, c, want))
	}
	synced = map[string]bool{}
	settled := true // The components before are up to date.
	for _, name := range []string{pd, tikv, tidb} {
		if c.component(name) == nil {
			continue
		}
		if err := s.applyConfigMap(ctx, c, c.configMap(name)); err != nil {
			errs, settled = append(errs, err), false
			continue
		}
		set, err := s.applySet(ctx, c, name, settled)
		synced[name] = err == nil
		if err != nil {
			errs = append(errs, err)
		}
		settled = settled && err == nil && upToDate(set)
	}
	return synced, errors.Join(errs...)
}

// tell records what was done to an object, or why it could not be.
func (s *syncer) tell(c *cluster, verb, kind, name string, err error) error {
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return errStale // It is not as it was when it was read.
	}
	what := fmt.Sprintf("%s %s %s in %s %s", strings.ToLower(verb), kind, name, Kind, c.Name)
	if err != nil {
		s.events.Event(c.reference(), v1.EventTypeWarning, "Failed"+verb, fmt.Sprintf("%s failed error: %v", what, err))
		return fmt.Errorf("%s failed error: %w", what, err)
	}
	s.events.Event(c.reference(), v1.EventTypeNormal, "Successful"+verb, what+" successful")
	return nil
}

func (c *cluster) reference() *v1.ObjectReference {
	return &v1.ObjectReference{
		APIVersion: Resource.GroupVersion().String(), Kind: Kind, Namespace: c.Namespace, Name: c.Name, UID: c.UID,
		ResourceVersion: c.ResourceVersion,
	}
}

func (s *syncer) applyService(ctx context.Context, c *cluster, want *v1.Service) error {
	have, err := s.get.service(c.Namespace, want.Name)
	if err != nil {
		return err
	}
	services := s.client.CoreV1().Services(c.Namespace)
	if have == nil {
		_, err := services.Create(ctx, want, metav1.CreateOptions{})
		return s.tell(c, "Create", "Service", want.Name, err)
	}
	now := have.DeepCopy()
	now.Labels = want.Labels
	now.Spec.Selector, now.Spec.Type = want.Spec.Selector, want.Spec.Type
	for i, p := range want.Spec.Ports { // Node ports stay.
		if i < len(now.Spec.Ports) {
			p.NodePort = now.Spec.Ports[i].NodePort
		}
		want.Spec.Ports[i] = p
	}
	now.Spec.Ports = want.Spec.Ports
	if equality.Semantic.DeepEqual(now, have) {
		return nil
	}
	_, err = services.Update(ctx, now, metav1.UpdateOptions{})
	return s.tell(c, "Update", "Service", want.Name, err)
}

func (s *syncer) applyConfigMap(ctx context.Context, c *cluster, want *v1.ConfigMap) error {
	have, err := s.get.configMap(c.Namespace, want.Name)
	if err != nil {
		return err
	}
	if have == nil {
		_, err := s.client.CoreV1().ConfigMaps(c.Namespace).Create(ctx, want, metav1.CreateOptions{})
		return s.tell(c, "Create", "ConfigMap", want.Name, err)
	}
	if equality.Semantic.DeepEqual(have.Data, want.Data) {
		return nil
	}
	now := have.DeepCopy()
	now.Data = want.Data
	_, err = s.client.CoreV1().ConfigMaps(c.Namespace).Update(ctx, now, metav1.UpdateOptions{})
	return s.tell(c, "Update", "ConfigMap", want.Name, err)
}

// before is the component that must run before another is made.
var before = map[string]string{tikv: pd, tidb: tikv}

// applySet makes the StatefulSet of a component, or takes it a step further. It returns what the API server has now:
// what was read before a write says nothing of how far the write has come.
func (s *syncer) applySet(ctx context.Context, c *cluster, name string, settled bool) (*appsv1.StatefulSet, error) {
	want := c.statefulSet(name)
	have, err := s.get.statefulSet(c.Namespace, want.Name)
	if err != nil {
		return nil, err
	}
	sets := s.client.AppsV1().StatefulSets(c.Namespace)
	if have == nil {
		if first, err := s.get.statefulSet(c.Namespace, c.Name+"-"+before[name]); before[name] != "" &&
			(err != nil || first == nil || first.Status.ReadyReplicas == 0) {
			return nil, errWait(fmt.Sprintf("TidbCluster: [%s/%s], waiting for %s cluster running", c.Namespace, c.Name,
				before[name]))
		}
		want.Spec.Replicas = ptr.To(min(*want.Spec.Replicas, createAtOnce))
		remember(want)
		made, err := sets.Create(ctx, want, metav1.CreateOptions{})
		return made, s.tell(c, "Create", "StatefulSet", want.Name, err)
	}
	if have.DeletionTimestamp != nil {
		return nil, errWait("waiting for StatefulSet " + want.Name + " to go")
	}
	if done, err := s.replaceVolumes(ctx, c, name, want, have); !done || err != nil {
		return nil, err
	}
	return s.update(ctx, c, name, want, have, settled)
}

// remember notes on a StatefulSet what it was made of, without the number of its pods.
func remember(set *appsv1.StatefulSet) {
	spec := set.Spec.DeepCopy()
	spec.Replicas = nil
	b, _ := json.Marshal(spec) // It came from JSON.
	set.Annotations[lastApplied] = string(b)
}

// update changes the template or the number of pods. A template waits for the components before it.
func (s *syncer) update(ctx context.Context, c *cluster, name string, want, have *appsv1.StatefulSet,
	settled bool,
) (*appsv1.StatefulSet, error) {
	next := have.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	remember(want)
	changed := want.Annotations[lastApplied] != have.Annotations[lastApplied]
	held := changed && !settled
	if changed && settled {
		next.Labels, next.Spec.Template = want.Labels, want.Spec.Template
		next.Spec.UpdateStrategy = want.Spec.UpdateStrategy
		if name == tikv {
			holdBack(next)
		}
		maps.Copy(next.Annotations, want.Annotations)
	}
	replicas, wait, err := s.scale(ctx, c, name, want, have)
	if err != nil {
		return nil, err
	}
	next.Spec.Replicas = &replicas
	var rolls error
	if name == tikv && !(changed && settled) {
		rolls = s.roll(ctx, c, next)
	}
	if !equality.Semantic.DeepEqual(next, have) {
		have, err = s.client.AppsV1().StatefulSets(c.Namespace).Update(ctx, next, metav1.UpdateOptions{})
		if err := s.tell(c, "Update", "StatefulSet", want.Name, err); err != nil {
			return nil, err
		}
	}
	switch {
	case rolls != nil:
		return have, rolls
	case wait != "":
		return have, errWait(wait)
	case held:
		return have, errWait(fmt.Sprintf("TidbCluster: [%s/%s]'s %s waits for the components before it", c.Namespace,
			c.Name, name))
	}
	return have, nil
}

// scale is how many pods there are to be next: one more or less, when it is time for that. If it is not, it says what
// for.
func (s *syncer) scale(ctx context.Context, c *cluster, name string,
	want, have *appsv1.StatefulSet,
) (n int32, wait string, err error) {
	is, to := ptr.Deref(have.Spec.Replicas, 1), ptr.Deref(want.Spec.Replicas, 1)
	last := fmt.Sprintf("%s-%d", have.Name, is-1)
	switch {
	case to > is:
		// A pod that another is added for will not be ready.
		if have.Status.ReadyReplicas+c.spares(name) < is || have.Status.ObservedGeneration < have.Generation {
			return is, fmt.Sprintf("TidbCluster: [%s/%s]'s %s is scaling out to %d: waiting for %s to be ready",
				c.Namespace, c.Name, name, to, last), nil
		}
		return is + 1, "", nil
	case to < is:
		if to < 0 {
			return is, "", fmt.Errorf("spec.%s.replicas must not be negative", name)
		}
		switch name {
		case pd:
			if err := s.driver.dismiss(ctx, c, last); err != nil {
				return is, "", fmt.Errorf("delete member %s: %w", last, err)
			}
		case tikv:
			gone, err := s.driver.retire(ctx, c, last)
			if err != nil || !gone {
				return is, fmt.Sprintf("TiKV %s/%s store still in cluster, state is Offline", c.Namespace, last), err
			}
		}
		return is - 1, "", nil
	}
	return is, "", nil
}

// upToDate reports whether all pods of a StatefulSet are what it says.
func upToDate(set *appsv1.StatefulSet) bool {
	st := set.Status
	return st.ObservedGeneration >= set.Generation && st.CurrentRevision == st.UpdateRevision && partition(set) == 0 &&
		st.ReadyReplicas == ptr.Deref(set.Spec.Replicas, 1)
}

// replaceVolumes gives the pods of a component claims of the storage class that they are to have: the StatefulSet is
// made anew around the pods, then one claim after the other is replaced with its pod. done says that there is no more
// to do.
func (s *syncer) replaceVolumes(ctx context.Context, c *cluster, name string,
	want, have *appsv1.StatefulSet,
) (done bool, err error) {
	if len(want.Spec.VolumeClaimTemplates) == 0 || len(have.Spec.VolumeClaimTemplates) == 0 {
		return true, nil
	}
	class := want.Spec.VolumeClaimTemplates[0].Spec.StorageClassName
	if ptr.Deref(class, "") != ptr.Deref(have.Spec.VolumeClaimTemplates[0].Spec.StorageClassName, "") {
		err := s.client.AppsV1().StatefulSets(c.Namespace).Delete(ctx, have.Name, metav1.DeleteOptions{
			PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan),
			Preconditions:     metav1.NewUIDPreconditions(string(have.UID)),
		})
		if apierrors.IsNotFound(err) {
			err = nil
		}
		if err := s.tell(c, "Delete", "StatefulSet", have.Name, err); err != nil {
			return false, err
		}
		return false, errWait("StatefulSet " + have.Name + " is made anew with another storage class")
	}
	ordinal, claim, err := s.misfit(c, name, have, class)
	if claim == nil || err != nil {
		return err == nil, err
	}
	pod := fmt.Sprintf("%s-%d", have.Name, ordinal)
	if wait, err := s.othersReady(c, have, pod); wait != "" || err != nil {
		return false, errors.Join(err, errWait(wait))
	}
	switch name {
	case pd:
		err = s.driver.dismiss(ctx, c, pod)
	case tikv:
		var gone bool
		if gone, err = s.driver.retire(ctx, c, pod); err == nil && !gone {
			return false, errWait("the store of " + pod + " is still in the cluster")
		}
	}
	if err != nil {
		return false, err
	}
	err = s.client.CoreV1().PersistentVolumeClaims(c.Namespace).Delete(ctx, claim.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(claim.UID))})
	if err == nil || apierrors.IsNotFound(err) {
		err = s.client.CoreV1().Pods(c.Namespace).Delete(ctx, pod, metav1.DeleteOptions{})
	}
	if apierrors.IsNotFound(err) {
		err = nil
	}
	if err := s.tell(c, "Delete", "PersistentVolumeClaim", claim.Name, err); err != nil {
		return false, err
	}
	return false, errWait("the volume of " + pod + " is replaced")
}

// misfit is the highest pod with a claim of another class. Without a class, what the first claim has is the right one.
func (s *syncer) misfit(c *cluster, name string, have *appsv1.StatefulSet,
	class *string,
) (int, *v1.PersistentVolumeClaim, error) {
	claims := make([]*v1.PersistentVolumeClaim, ptr.Deref(have.Spec.Replicas, 1))
	for i := range claims {
		var err error
		if claims[i], err = s.get.claim(c.Namespace, fmt.Sprintf("%s-%s-%d", name, have.Name, i)); err != nil {
			return 0, nil, err
		}
		if class == nil && claims[i] != nil && claims[i].Status.Phase == v1.ClaimBound {
			class = claims[i].Spec.StorageClassName
		}
	}
	if class == nil {
		return 0, nil, nil
	}
	for i, claim := range slices.Backward(claims) {
		if claim != nil && claim.DeletionTimestamp == nil && ptr.Deref(claim.Spec.StorageClassName, "") != *class {
			return i, claim, nil
		}
	}
	return 0, nil, nil
}

// othersReady says for which pod a component must wait before another goes.
func (s *syncer) othersReady(c *cluster, have *appsv1.StatefulSet, but string) (wait string, err error) {
	for i := range ptr.Deref(have.Spec.Replicas, 1) {
		name := fmt.Sprintf("%s-%d", have.Name, i)
		if name == but {
			continue
		}
		p, err := s.get.pod(c.Namespace, name)
		if err != nil {
			return "", err
		}
		if p == nil || !ready(p) {
			return fmt.Sprintf("waiting for %s to be ready before the volume of %s is replaced", name, but), nil
		}
	}
	return "", nil
}

func ready(p *v1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(x v1.PodCondition) bool {
		return x.Type == v1.PodReady && x.Status == v1.ConditionTrue
	})
}
