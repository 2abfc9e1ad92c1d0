package kube

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// storage looks whether the claims for volumes would be bound.
func (e *examination) storage(ctx context.Context) Finding {
	const check = "storage"
	if len(e.demand.claims) == 0 {
		return Finding{}
	}
	classes, err := e.client.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return Finding{check, Warning, fmt.Sprintf("storage classes cannot be listed: %v", err), ""}
	}
	standard := slices.IndexFunc(classes.Items, isDefault)
	var classless []v1.PersistentVolumeClaimSpec
	for _, claim := range e.demand.claims {
		switch name := ptr.Deref(claim.StorageClassName, ""); {
		case name == "" && (standard < 0 || claim.StorageClassName != nil):
			classless = append(classless, claim)
		case name != "" && !hasClass(classes.Items, name):
			return Finding{
				check, Problem, "there is no storage class " + name, "Make one, or change the application's claims.",
			}
		}
	}
	all := count(len(e.demand.claims), "claim")
	if len(classless) == 0 {
		return Finding{check, OK, fmt.Sprintf("%s for volumes, which storage class %s provisions", all,
			className(classes.Items, standard)), ""}
	}
	volumes, err := e.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return Finding{
			check, Warning, fmt.Sprintf("no storage class is the default, and volumes cannot be listed: %v", err), "",
		}
	}
	unbound := bind(classless, volumes.Items)
	if unbound == 0 {
		return Finding{check, OK, fmt.Sprintf("%s for volumes, and there are volumes without a class for all", all), ""}
	}
	do := "Install a provisioner, such as local-path-provisioner, with a class that is the default; or make volumes."
	if len(classes.Items) > 0 {
		do = fmt.Sprintf("Make a class the default: kubectl annotate storageclass %s %s=true", classes.Items[0].Name,
			defaultClass)
	}
	return Finding{
		check, Problem, fmt.Sprintf("no storage class is the default, and %d of %s for volumes would be pending",
			unbound, all),
		do,
	}
}

// defaultClass is the annotation of the class for claims that name none.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

func isDefault(c storagev1.StorageClass) bool { return c.Annotations[defaultClass] == "true" }

func hasClass(list []storagev1.StorageClass, name string) bool {
	return slices.ContainsFunc(list, func(c storagev1.StorageClass) bool { return c.Name == name })
}

func className(list []storagev1.StorageClass, i int) string {
	if i < 0 {
		return "of their own"
	}
	return list[i].Name
}

// bind says how many claims find no volume. As the cluster does, it gives each the smallest that is enough.
func bind(claims []v1.PersistentVolumeClaimSpec, volumes []v1.PersistentVolume) (unbound int) {
	volumes = slices.DeleteFunc(slices.Clone(volumes), func(v v1.PersistentVolume) bool {
		return v.Status.Phase != v1.VolumeAvailable || v.Spec.StorageClassName != "" || v.Spec.ClaimRef != nil
	})
	slices.SortFunc(volumes, func(a, b v1.PersistentVolume) int {
		return a.Spec.Capacity.Storage().Cmp(*b.Spec.Capacity.Storage())
	})
	claims = slices.Clone(claims)
	slices.SortFunc(claims, func(a, b v1.PersistentVolumeClaimSpec) int {
		return a.Resources.Requests.Storage().Cmp(*b.Resources.Requests.Storage())
	})
	for _, claim := range claims {
		i := slices.IndexFunc(volumes, func(v v1.PersistentVolume) bool {
			return v.Spec.Capacity.Storage().Cmp(*claim.Resources.Requests.Storage()) >= 0 &&
				!slices.ContainsFunc(claim.AccessModes, func(m v1.PersistentVolumeAccessMode) bool {
					return !slices.Contains(v.Spec.AccessModes, m)
				})
		})
		if i < 0 {
			unbound++
			continue
		}
		volumes = slices.Delete(volumes, i, i+1)
	}
	return unbound
}
