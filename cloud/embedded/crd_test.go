package embedded_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const backupCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.lab.example.com}
spec:
  group: lab.example.com
  names: {kind: Backup, listKind: BackupList, plural: backups, singular: backup, shortNames: [bk]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Copies, type: integer, jsonPath: .spec.copies}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [source]
            properties:
              source: {type: string, minLength: 1}
              copies: {type: integer, minimum: 1, maximum: 3, default: 2}
            x-kubernetes-validations:
            - {rule: "self.source != 'nothing'", message: there must be something to back up}
          status:
            type: object
            properties:
              done: {type: integer}
`

var backups = schema.GroupVersionResource{Group: "lab.example.com", Version: "v1", Resource: "backups"}

// A definition, and a controller for its objects as client-go users write it.
func TestCustomResource(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	crd := c.apply(t, "", backupCRD)[0]
	t.Cleanup(func() {
		_ = c.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
			Delete(context.Background(), crd.GetName(), metav1.DeleteOptions{})
	})
	awaitTrue(t, "backups are served", func() bool {
		_, err := c.dynamic.Resource(backups).Namespace(ns).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	c.mapper.Reset()
	runBackupController(t, c, ns)

	client := c.dynamic.Resource(backups).Namespace(ns)
	backup := func(name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "lab.example.com/v1", "kind": "Backup", "metadata": map[string]any{"name": name}, "spec": spec,
		}}
	}
	for name, tt := range map[string]struct {
		spec map[string]any
		want string
	}{
		"missing": {map[string]any{}, `spec.source: Required value`},
		"type":    {map[string]any{"source": int64(1)}, `spec.source: Invalid value: "integer": spec.source in body must be of type string: "integer"`},
		"range":   {map[string]any{"source": "db", "copies": int64(9)}, `spec.copies: Invalid value: 9: spec.copies in body should be less than or equal to 3`},
		"rule":    {map[string]any{"source": "nothing"}, `there must be something to back up`},
		"unknown": {map[string]any{"source": "db", "colour": "red"}, `unknown field "spec.colour"`},
	} {
		_, err := client.Create(t.Context(), backup(name, tt.spec), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}

	b := backup("nightly", map[string]any{"source": "db"})
	_ = unstructured.SetNestedField(b.Object, int64(7), "status", "done") // Only the subresource sets it.
	b, err := client.Create(t.Context(), b, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n, _, _ := unstructured.NestedInt64(b.Object, "spec", "copies"); n != 2 {
		t.Errorf("copies is %d, want the default 2", n)
	}
	if _, has := b.Object["status"]; has {
		t.Error("a status was taken over at creation")
	}
	done := await(t, func() (*unstructured.Unstructured, error) {
		b, err := client.Get(t.Context(), "nightly", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if n, _, _ := unstructured.NestedInt64(b.Object, "status", "done"); n != 2 {
			return nil, fmt.Errorf("done is %d, want 2", n)
		}
		return b, nil
	})
	if done.GetGeneration() != 1 {
		t.Errorf("a status update made it generation %d", done.GetGeneration())
	}
	copies, err := c.client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "backup=nightly"})
	if err != nil || len(copies.Items) != 2 {
		t.Fatalf("%d copies, %v", len(copies.Items), err)
	}
	// The garbage collector knows custom owners too.
	if err := client.Delete(t.Context(), "nightly", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, "a copy", func() (*v1.ConfigMap, error) {
		return c.client.CoreV1().ConfigMaps(ns).Get(t.Context(), copies.Items[0].Name, metav1.GetOptions{})
	})
}

// runBackupController makes a ConfigMap for each copy of a Backup and counts them in its status,
// until the test ends.
func runBackupController(t *testing.T, c *cluster, ns string) {
	f := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, 0, ns, nil)
	i := f.ForResource(backups)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	enqueue := func(obj any) {
		if key, err := cache.MetaNamespaceKeyFunc(obj); err == nil {
			queue.Add(key)
		}
	}
	if _, err := i.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) }}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	finished := make(chan struct{})
	t.Cleanup(func() { cancel(); queue.ShutDown(); <-finished; f.Shutdown() })
	f.Start(ctx.Done())
	if !cache.WaitForCacheSync(t.Context().Done(), i.Informer().HasSynced) {
		t.Fatal("the informer did not sync")
	}
	reconcile := func(key string) error {
		_, name, err := cache.SplitMetaNamespaceKey(key)
		if err != nil {
			return err
		}
		obj, err := i.Lister().ByNamespace(ns).Get(name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		b := obj.(*unstructured.Unstructured).DeepCopy()
		want, _, _ := unstructured.NestedInt64(b.Object, "spec", "copies")
		for n := range want {
			m := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", name, n), Labels: map[string]string{"backup": name},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: b.GetAPIVersion(), Kind: b.GetKind(), Name: name, UID: b.GetUID()}},
			}}
			if _, err := c.client.CoreV1().ConfigMaps(ns).Create(ctx, m, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
		if done, _, _ := unstructured.NestedInt64(b.Object, "status", "done"); done == want {
			return nil
		}
		if err := unstructured.SetNestedField(b.Object, want, "status", "done"); err != nil {
			return err
		}
		_, err = c.dynamic.Resource(backups).Namespace(ns).UpdateStatus(ctx, b, metav1.UpdateOptions{})
		return err
	}
	go func() {
		defer close(finished)
		for {
			key, stop := queue.Get()
			if stop {
				return
			}
			if err := reconcile(key); err != nil {
				queue.AddRateLimited(key)
			} else {
				queue.Forget(key)
			}
			queue.Done(key)
		}
	}()
}
