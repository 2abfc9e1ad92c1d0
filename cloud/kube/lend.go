package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/aiopslab/aiopslab/cloud"
)

var _ cloud.Lender = (*Cloud)(nil)

// A fault may have volumes outlive their claims. They are the cluster's own, so how they were is noted before they are
// changed: in an annotation of a ClusterRole without any rule, which has the run's label and which no agent can read.
// Whoever removes what the run has made finds it there, and puts them back first.

// lentAnnotation has volumes as they were, by name, as JSON.
const lentAnnotation = "aiopslab.io/volumes"

// lentVolume is a volume as it was.
type lentVolume struct {
	UID    types.UID                        `json:"uid"`
	Policy v1.PersistentVolumeReclaimPolicy `json:"policy"`
}

func lentName(run string) string { return "aiopslab-volumes-" + run }

// Lend implements [cloud.Lender].
func (c *Cloud) Lend(ctx context.Context, volumes ...string) error {
	roles, name := c.client.RbacV1().ClusterRoles(), lentName(c.run)
	role, err := roles.Get(ctx, name, metav1.GetOptions{})
	made := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read how volumes were: %w", err)
	}
	all, err := lentBy(role)
	if err != nil {
		return err
	}
	for _, name := range volumes {
		if _, noted := all[name]; noted {
			continue
		}
		pv, err := c.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		all[name] = lentVolume{pv.UID, pv.Spec.PersistentVolumeReclaimPolicy}
	}
	note, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if made {
		var patch []byte
		patch, err = json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": role.UID, "annotations": map[string]string{lentAnnotation: string(note)},
		}})
		if err == nil {
			_, err = roles.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
	} else {
		_, err = roles.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{RunLabel: c.run},
			Annotations: map[string]string{lentAnnotation: string(note)},
		}}, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("note how volumes were: %w", err)
	}
	return nil
}

// lentBy reads what a role has noted.
func lentBy(role *rbacv1.ClusterRole) (map[string]lentVolume, error) {
	all := map[string]lentVolume{}
	if role == nil || role.Annotations[lentAnnotation] == "" {
		return all, nil
	}
	if err := json.Unmarshal([]byte(role.Annotations[lentAnnotation]), &all); err != nil {
		return nil, fmt.Errorf("read how volumes were: clusterroles/%s: %w", role.Name, err)
	}
	return all, nil
}

// giveBack puts the volumes back that a run was lent. One that belongs to a claim which is gone is then removed by the
// cluster, if that is its policy, as it would have been without the lab.
func (c *Cloud) giveBack(ctx context.Context, run string) error {
	role, err := c.client.RbacV1().ClusterRoles().Get(ctx, lentName(run), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err): // Then nobody of these rights has lent any.
		return nil
	case err != nil:
		return fmt.Errorf("read how volumes were: %w", err)
	case role.Labels[RunLabel] != run: // It is somebody else's.
		return nil
	}
	all, err := lentBy(role)
	if err != nil {
		return err
	}
	var errs []error
	for name := range maps.Keys(all) {
		if err := c.putBack(ctx, name, all[name]); err != nil {
			errs = append(errs, fmt.Errorf("give persistentvolumes/%s its reclaim policy back: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (c *Cloud) putBack(ctx context.Context, name string, was lentVolume) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": was.UID},
		"spec":     map[string]any{"persistentVolumeReclaimPolicy": was.Policy},
	})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().PersistentVolumes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // It is gone, or has made way for another.
		return nil
	}
	return err
}
