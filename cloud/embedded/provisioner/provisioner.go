// Package provisioner makes persistent volumes for claims of the default storage class: directories
// on the disk of the node the claim's pod is scheduled to, as rancher.io/local-path does on kind and
// k3s.
package provisioner

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
)

const (
	// Name is the provisioner's name, and ClassName that of the default storage class.
	Name      = "rancher.io/local-path"
	ClassName = "standard"

	root = "/var/local-path-provisioner"

	provisionerAnnotation = "volume.kubernetes.io/storage-provisioner"
	provisionedBy         = "pv.kubernetes.io/provisioned-by"
	selectedNode          = "volume.kubernetes.io/selected-node"
)

// Disks is what the provisioner needs of the nodes.
type Disks interface {
	// RemoveDir deletes a directory of a node's disk.
	RemoveDir(node, dir string) error
}

// StorageClass returns the default storage class.
func StorageClass() *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        ClassName,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:       Name,
		ReclaimPolicy:     ptr.To(v1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
	}
}

// Provisioner watches claims and volumes.
type Provisioner struct {
	client   clientset.Interface
	disks    Disks
	recorder record.EventRecorder
	claims   corelisters.PersistentVolumeClaimLister
	volumes  corelisters.PersistentVolumeLister
	nodes    corelisters.NodeLister
	classes  storagelisters.StorageClassLister
	queue    workqueue.TypedRateLimitingInterface[item]
}

// item is a claim, or a volume if it has no namespace.
type item struct{ namespace, name string }

// New returns a provisioner over the factory's informers, which the caller starts.
func New(client clientset.Interface, f informers.SharedInformerFactory, disks Disks,
	recorder record.EventRecorder,
) (*Provisioner, error) {
	core := f.Core().V1()
	p := &Provisioner{
		client: client, disks: disks, recorder: recorder,
		claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister(),
		nodes: core.Nodes().Lister(), classes: f.Storage().V1().StorageClasses().Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[item](10*time.Millisecond, 30*time.Second)),
	}
	add := func(obj any) {
		if m, ok := obj.(metav1.Object); ok {
			p.queue.Add(item{m.GetNamespace(), m.GetName()})
		}
	}
	for _, i := range []cache.SharedIndexInformer{
		core.PersistentVolumeClaims().Informer(),
		core.PersistentVolumes().Informer(),
	} {
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, obj any) {
			add(obj)
		}}); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Run works until ctx ends.
func (p *Provisioner) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, p.queue.ShutDown)
	defer stop()
	for {
		i, quit := p.queue.Get()
		if quit {
			return
		}
		var err error
		if i.namespace == "" {
			err = p.reclaim(ctx, i.name)
		} else {
			err = p.provision(ctx, i.namespace, i.name)
		}
		if err != nil && ctx.Err() == nil {
			p.queue.AddRateLimited(i)
		} else {
			p.queue.Forget(i)
		}
		p.queue.Done(i)
	}
}

// provision creates a volume for a claim that waits for one of ours.
func (p *Provisioner) provision(ctx context.Context, namespace, name string) error {
	c, err := p.claims.PersistentVolumeClaims(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if c.Annotations[provisionerAnnotation] != Name || c.Spec.VolumeName != "" || c.DeletionTimestamp != nil {
		return nil
	}
	class, err := p.classes.Get(ptr.Deref(c.Spec.StorageClassName, ""))
	if err != nil {
		return err
	}
	node, err := p.nodeFor(c, class)
	if err != nil {
		p.recorder.Event(c, v1.EventTypeWarning, "ProvisioningFailed",
			fmt.Sprintf("failed to provision volume with StorageClass %q: %v", class.Name, err))
		return err
	}
	if node == "" {
		return nil // The scheduler has not chosen one yet.
	}
	pv := "pvc-" + string(c.UID)
	p.recorder.Event(c, v1.EventTypeNormal, "Provisioning",
		fmt.Sprintf("External provisioner is provisioning volume for claim %q", namespace+"/"+name))
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: pv, Annotations: map[string]string{provisionedBy: Name}},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: ptr.Deref(class.ReclaimPolicy, v1.PersistentVolumeReclaimDelete),
			AccessModes:                   c.Spec.AccessModes, VolumeMode: c.Spec.VolumeMode,
			StorageClassName: class.Name,
			Capacity:         v1.ResourceList{v1.ResourceStorage: c.Spec.Resources.Requests[v1.ResourceStorage]},
			ClaimRef: &v1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: namespace,
				Name: name, UID: c.UID,
			},
			PersistentVolumeSource: v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{
				Path: fmt.Sprintf("%s/%s_%s_%s", root, pv, namespace, name), Type: ptr.To(v1.HostPathDirectoryOrCreate),
			}},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{
					{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{node}},
				},
			}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	p.recorder.Event(c, v1.EventTypeNormal, "ProvisioningSucceeded", "Successfully provisioned volume "+pv)
	return nil
}

// nodeFor returns where a claim's volume goes: where its first pod does, or anywhere if the class
// does not wait for one.
func (p *Provisioner) nodeFor(c *v1.PersistentVolumeClaim, class *storagev1.StorageClass) (string, error) {
	for _, mode := range c.Spec.AccessModes {
		if mode == v1.ReadOnlyMany || mode == v1.ReadWriteMany {
			return "", errors.New("NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes")
		}
	}
	if node := c.Annotations[selectedNode]; node != "" {
		return node, nil
	}
	if ptr.Deref(class.VolumeBindingMode,
		storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingWaitForFirstConsumer {
		return "", nil
	}
	nodes, err := p.nodes.List(labels.Everything())
	if err != nil || len(nodes) == 0 {
		return "", errors.New("no node has room for the volume")
	}
	return nodes[0].Name, nil
}

// reclaim deletes a volume of ours whose claim is gone.
func (p *Provisioner) reclaim(ctx context.Context, name string) error {
	pv, err := p.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if pv.Annotations[provisionedBy] != Name || pv.Status.Phase != v1.VolumeReleased ||
		pv.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimDelete || pv.DeletionTimestamp != nil {
		return nil
	}
	if a := pv.Spec.NodeAffinity; a != nil && a.Required != nil && pv.Spec.HostPath != nil {
		for _, term := range a.Required.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				for _, node := range e.Values {
					if err := p.disks.RemoveDir(node, pv.Spec.HostPath.Path); err != nil {
						return err
					}
				}
			}
		}
	}
	err = p.client.CoreV1().PersistentVolumes().Delete(ctx, name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pv.UID}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
