package controlplane

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/kubeapiserver"

	"github.com/aiopslab/aiopslab/cloud"
)

const cacheWorkers = 8

// awaitCaches returns when the API server's watch caches have seen what was written, given as the
// revision of each key. Informers start from those caches, and a controller that starts from an old
// one acts on what is not there any more.
func (p *Plane) awaitCaches(ctx context.Context, written map[string]int64) error {
	lists, err := p.client.Discovery().ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // An aggregated API may be away.
		return fmt.Errorf("discover what was restored: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(cacheWorkers)
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return err
		}
		for _, r := range l.APIResources {
			prefix := registry + storagePrefix(schema.GroupResource{Group: gv.Group, Resource: r.Name})
			var revision int64
			for key, at := range written {
				if strings.HasPrefix(key, prefix) {
					revision = max(revision, at)
				}
			}
			if revision > 0 && slices.Contains(r.Verbs, "watch") {
				g.Go(func() error { return p.awaitCache(ctx, gv.WithResource(r.Name), revision) })
			}
		}
	}
	return g.Wait()
}

// storagePrefix is where the objects of a resource are in the store. Kube-apiserver's own have no group
// there; custom resources, and those of the servers it delegates to, do.
func storagePrefix(r schema.GroupResource) string {
	switch p, special := kubeapiserver.SpecialDefaultResourcePrefixes[r]; {
	case special:
		return p + "/"
	case legacyscheme.Scheme.IsGroupRegistered(r.Group):
		return r.Resource + "/"
	}
	return r.Group + "/" + r.Resource + "/"
}

// Key is where a namespaced or cluster-wide object of a kind of Kubernetes' own is stored.
func Key(o cloud.Object) string {
	gvk := o.GetObjectKind().GroupVersionKind()
	r, _ := meta.UnsafeGuessKindToResource(gvk) // Right for all of them but Endpoints, which is plural.
	return registry + storagePrefix(r.GroupResource()) + path.Join(o.GetNamespace(), o.GetName())
}

// awaitCache asks for nothing, not older than a revision.
func (p *Plane) awaitCache(ctx context.Context, r schema.GroupVersionResource, revision int64) error {
	path := []string{"/apis", r.Group, r.Version, r.Resource}
	if r.Group == "" {
		path = []string{"/api", r.Version, r.Resource}
	}
	for {
		err := p.client.Discovery().RESTClient().Get().AbsPath(path...).
			Param("resourceVersion", strconv.FormatInt(revision, 10)).
			Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan)).
			Param("fieldSelector", "metadata.name=none").
			Do(ctx).Error()
		switch {
		case err == nil, apierrors.IsNotFound(err): // Definitions come and go.
			return nil
		case ctx.Err() != nil, !apierrors.IsTimeout(err):
			return fmt.Errorf("wait for the cache of %s: %w", r.GroupResource(), err)
		}
		time.Sleep(bootstrapRetry)
	}
}
