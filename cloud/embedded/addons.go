package embedded

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/aiopslab/aiopslab/cloud/embedded/provisioner"
)

// manifests are what a new cluster comes with.
//
//go:embed manifests/*.yaml
var manifests embed.FS

const (
	addonWorkers = 4
	addonRetry   = 10 * time.Millisecond
)

// plurals are the resources of the kinds in the manifests that are not their kind with an s.
var plurals = map[string]string{"NetworkPolicy": "networkpolicies"}

// addons are being installed, or are. The zero value is of a cluster that has them already.
type addons struct {
	cancel context.CancelFunc
	done   chan struct{} // nil if there is nothing to do
	err    error         // known when done
}

// start begins, and gives up when the control plane ends.
func (a *addons) start(ended <-chan struct{}, install func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel, a.done = cancel, make(chan struct{})
	go func() {
		defer close(a.done)
		a.err = install(ctx)
	}()
	go func() {
		defer cancel()
		select {
		case <-ended:
		case <-a.done:
		}
	}()
}

// wait returns when all is installed.
func (a *addons) wait(ctx context.Context) error {
	if a.done == nil {
		return nil
	}
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *addons) stop() {
	if a.done != nil {
		a.cancel()
		<-a.done
	}
}

// installAddons creates the objects of the manifests and the default storage class.
func (c *Cloud) installAddons(ctx context.Context) error {
	dyn, err := dynamic.NewForConfig(c.plane.RESTConfig("kubectl"))
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(addonWorkers)
	g.Go(func() error {
		_, err := c.client.StorageV1().StorageClasses().Create(ctx, provisioner.StorageClass(), metav1.CreateOptions{})
		return err
	})
	files, err := fs.Glob(manifests, "manifests/*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		b, err := manifests.ReadFile(file)
		if err != nil {
			return err
		}
		objects, err := decode(b)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, o := range objects {
			g.Go(func() error { return create(ctx, dyn, o) })
		}
	}
	return g.Wait()
}

func decode(b []byte) (list []*unstructured.Unstructured, err error) {
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(b), 4096)
	for {
		o := &unstructured.Unstructured{}
		switch err := d.Decode(o); {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, err
		case len(o.Object) > 0:
			list = append(list, o)
		}
	}
}

// create creates an object, and waits for its namespace if need be: the API server makes that a
// moment after it starts.
func create(ctx context.Context, dyn dynamic.Interface, o *unstructured.Unstructured) error {
	gvk := o.GroupVersionKind()
	resource := strings.ToLower(gvk.Kind) + "s"
	if p, ok := plurals[gvk.Kind]; ok {
		resource = p
	}
	var client dynamic.ResourceInterface = dyn.Resource(
		schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: resource})
	if ns := o.GetNamespace(); ns != "" {
		client = dyn.Resource(schema.GroupVersionResource{
			Group: gvk.Group, Version: gvk.Version,
			Resource: resource,
		}).Namespace(ns)
	}
	for {
		_, err := client.Create(ctx, o, metav1.CreateOptions{})
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
			return nil
		case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			return fmt.Errorf("create %s %s: %w", gvk.Kind, o.GetName(), err)
		}
		select {
		case <-time.After(addonRetry):
		case <-ctx.Done():
			return fmt.Errorf("create %s %s: %w", gvk.Kind, o.GetName(), err)
		}
	}
}

// WaitReady returns when cluster DNS and metrics-server are up, and names are found.
func (c *Cloud) WaitReady(ctx context.Context) error {
	if err := c.addons.wait(ctx); err != nil {
		return fmt.Errorf("the cluster is not ready: %w", err)
	}
	for {
		list, err := c.client.AppsV1().Deployments(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		if err == nil {
			waiting := unready(list.Items)
			if len(waiting) > 0 || len(list.Items) == 0 {
				err = fmt.Errorf("waiting for %s", strings.Join(waiting, ", "))
			} else if err = c.findsNames(ctx); err == nil {
				return nil
			}
		}
		select {
		case <-time.After(addonRetry):
		case <-ctx.Done():
			return fmt.Errorf("the cluster is not ready: %w", err)
		}
	}
}

// findsNames looks a Service up. Nodes hear of the pods of cluster DNS a moment after these are ready.
func (c *Cloud) findsNames(ctx context.Context) error {
	conn, err := c.Dial(ctx, "tcp", "kubernetes.default:443")
	if err != nil {
		return err
	}
	return conn.Close()
}

func unready(list []appsv1.Deployment) (names []string) {
	for _, d := range list {
		if d.Spec.Replicas != nil && d.Status.AvailableReplicas < *d.Spec.Replicas {
			names = append(names, d.Name)
		}
	}
	return names
}
