package fault

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/sockshop"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/workload"
)

// remember answers as memcached does.
func remember(ln net.Listener) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			defer c.Close()
			for in := bufio.NewScanner(c); in.Scan(); {
				answer := "VERSION 1.6.40\r\n"
				if strings.HasPrefix(in.Text(), "stats") {
					answer = "STAT pid 1\r\nEND\r\n"
				}
				_, _ = io.WriteString(c, answer)
			}
		})
	}
}

// passing is what an API server answers that is asked to pass a request on.
type passing struct{ err error }

func (p passing) DoRaw(context.Context) ([]byte, error)         { return []byte("up 1\n"), p.err }
func (p passing) Stream(context.Context) (io.ReadCloser, error) { return nil, p.err }

// On a cluster of somebody's the lab's own requests get past what disturbs a pod's network: there a disturbance shows in
// what the API server gets, if it gets anything at all, and in what users get.
func TestNetworkOfGuests(t *testing.T) {
	const usersSay = "50 of 100 requests of users failed in the last 10s"
	for name, tt := range map[string]struct {
		service string
		guest   bool
		failed  int64  // requests of users
		cut     string // off from the API server: a part of pods' names
		want    string
	}{
		"not a guest":              {"memcached-rate", false, 50, "", ""},
		"all is well":              {"memcached-rate", true, 0, "", ""},
		"users complain":           {"memcached-rate", true, 50, "", usersSay},
		"the API server complains": {"geo", true, 0, "geo", "6 of 6 requests to geo over the network failed: i/o timeout"},
		"it reaches nobody":        {"geo", true, 0, "-1", ""},
		"nor do users":             {"geo", true, 50, "-1", usersSay},
		"it reaches it":            {"geo", true, 0, "rate", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, hotel.App(), map[string]string{"memcached-rate": "n1", "geo": "n1", "rate": "n1", "user": "n1"})
			l.env.Dial, l.env.Guest = serve(t, remember), tt.guest
			l.env.Load = func(context.Context) (*workload.Snapshot, error) {
				return &workload.Snapshot{Windows: []workload.Window{{Name: "10s", Total: workload.SLI{Requests: 100, Failed: tt.failed}}}}, nil
			}
			l.PrependProxyReactor("pods", func(action clienttesting.Action) (bool, rest.ResponseWrapper, error) {
				get := action.(clienttesting.ProxyGetAction)
				if get.GetScheme() != "http" || get.GetPort() != "9464" || get.GetPath() != "metrics" {
					t.Errorf("asked for %s, %s, %s", get.GetScheme(), get.GetPort(), get.GetPath())
				}
				if tt.cut != "" && strings.Contains(get.GetName(), tt.cut) {
					return true, passing{errors.New("i/o timeout")}, nil
				}
				return true, passing{}, nil
			})
			pods, err := podsOf(t.Context(), l.env, tt.service)
			if err != nil || len(pods) != 1 {
				t.Fatal(pods, err)
			}
			probe := defaultNetwork(time.Minute).probe
			if tt.service == "geo" { // Nobody here answers for it.
				probe = func(ctx context.Context, e *Env, service string) (string, error) {
					return defaultNetwork(time.Minute).fromAfar(ctx, e, service, pods)
				}
			}
			if got, err := probe(t.Context(), l.env, tt.service); err != nil || got != tt.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// Where the lab is a guest its namespace stays, and with it whose it is. What is in it goes, and volumes are noted before
// they are changed.
func TestRedeployOfGuests(t *testing.T) {
	a := hotel.App()
	f := bind(t, "redeploy_without_pv", a, "", "").(*unbound)
	objects := []runtime.Object{&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace, UID: "ns"}}}
	claims := f.claimsOf(withVolumes(a))
	for _, claim := range claims {
		uid := types.UID("old " + claim)
		objects = append(objects, &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: claim, UID: uid},
			Spec:       v1.PersistentVolumeClaimSpec{VolumeName: "pv-" + claim},
		}, &v1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv-" + claim},
			Spec: v1.PersistentVolumeSpec{
				PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete, ClaimRef: &v1.ObjectReference{UID: uid},
			},
			Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound},
		})
	}
	for _, s := range a.Services {
		objects = append(objects, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: s.Name}})
	}
	c := fake.NewClientset(objects...)
	var lent []string
	e := &Env{Client: c, App: a, Guest: true, Lend: func(ctx context.Context, volumes ...string) error {
		for _, name := range volumes {
			pv, err := c.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
			if err != nil || pv.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimDelete {
				t.Errorf("%s is lent when it is changed already, or %v", name, err)
			}
		}
		lent = append(lent, volumes...)
		return nil
	}}
	if err := f.keep(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	// What the controller of volumes does when a claim is gone.
	c.PrependReactor("delete", "persistentvolumeclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := "pv-" + action.(clienttesting.DeleteAction).GetName()
		pv, err := c.Tracker().Get(v1.SchemeGroupVersion.WithResource("persistentvolumes"), "", name)
		if err == nil {
			released := pv.DeepCopyObject().(*v1.PersistentVolume)
			released.Status.Phase = v1.VolumeReleased
			err = c.Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumes"), released, "")
		}
		return false, nil, err
	})
	c.PrependReactor("delete-collection", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		for _, s := range a.Services {
			_ = c.Tracker().Delete(appsv1.SchemeGroupVersion.WithResource("deployments"), a.Namespace, s.Name)
		}
		return true, nil, nil
	})
	for range 2 { // It may be cut off, and begin again.
		if err := f.undeploy(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for _, action := range c.Actions() {
		if action.GetResource().Resource == "namespaces" && action.GetVerb() != "get" {
			t.Errorf("%s of the namespace", action.GetVerb())
		}
	}
	left, err := c.AppsV1().Deployments(a.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("%d Deployments are left, %v", len(left.Items), err)
	}
	gone, err := c.CoreV1().PersistentVolumeClaims(a.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(gone.Items) > 0 {
		t.Errorf("%d claims are left, %v", len(gone.Items), err)
	}
	slices.Sort(lent)
	if len(lent) != len(claims) || !slices.Equal(lent, f.Volumes()) {
		t.Errorf("lent are %q, and to be changed %q", lent, f.Volumes())
	}
}

// A namespace that was made for the run is used and left to who has made it.
func TestHostileOfGuests(t *testing.T) {
	a := sockshop.App()
	k, err := Find(Kinds(), "hostile_client")
	if err != nil {
		t.Fatal(err)
	}
	place := &cloud.Tenancy{Suffix: "-3"}
	made, err := k.New(Target{App: a, Service: "front-end", Place: place}, node(t, "{path: /catalogue}"))
	if err != nil {
		t.Fatal(err)
	}
	f := made.(*hostile)
	c := fake.NewClientset(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "partners-3", UID: "claimed"}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // Nobody asks anything here.
	if err := f.Inject(ctx, &Env{Client: c, App: a, Guest: true}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	list, err := c.AppsV1().Deployments("partners-3").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%d clients, %v", len(list.Items), err)
	}
	if err := f.Recover(t.Context(), &Env{Client: c, App: a, Guest: true}); err != nil {
		t.Fatal(err)
	}
	list, err = c.AppsV1().Deployments("partners-3").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("%d clients are left, %v", len(list.Items), err)
	}
	if _, err := c.CoreV1().Namespaces().Get(t.Context(), "partners-3", metav1.GetOptions{}); err != nil {
		t.Errorf("the namespace: %v", err)
	}
}
