package undo

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// undoAll takes changes back, the latest first, and returns what was said.
func undoAll(t testing.TB, u *Undoer, changes []Change) (done, left string) {
	t.Helper()
	var texts, lefts []string
	for _, c := range slices.Backward(changes) {
		o := u.Undo(t.Context(), c)
		texts, lefts = append(texts, o.Text), append(lefts, o.Left...)
	}
	return strings.Join(texts, "\n"), strings.Join(lefts, "\n")
}

// TestUndo writes in many ways and takes all of it back. What others do is done after the writes.
func TestUndo(t *testing.T) {
	const finalized = `{"kind":"Thing","metadata":{"finalizers":["shop.example/wait"]},"data":{"a":"1"}}`
	deployment, rs, hpaScaled := ref("apps", "deployments", "web"), ref("apps", "replicasets", "web-1"), ref("apps", "deployments", "scaled")
	tests := []struct {
		name       string
		write      func(t *testing.T, f *fake) []Change
		others     func(t *testing.T, f *fake)
		done, left string // must be said
		want       func(state map[string]any)
	}{
		{
			name: "an object that was created",
			write: func(t *testing.T, f *fake) []Change {
				return []Change{f.create(t, cm("new"), `{"data":{"a":"1"}}`)}
			}, done: "deleted",
		},
		{
			name: "an object that was created with a finalizer nobody clears",
			write: func(t *testing.T, f *fake) []Change {
				return []Change{f.create(t, cm("new"), finalized)}
			}, done: "without waiting for its finalizers shop.example/wait",
		},
		{
			name: "an object that somebody else has put in the place of the created one",
			write: func(t *testing.T, f *fake) []Change {
				return []Change{f.create(t, cm("new"), `{"data":{"a":"1"}}`)}
			},
			others: func(t *testing.T, f *fake) {
				f.delete(t, cm("new"))
				f.create(t, cm("new"), `{"data":{"a":"theirs"}}`)
			},
			left: "somebody else has created it anew",
			want: func(s map[string]any) {
				s["configmaps new in shop"] = map[string]any{"data": map[string]any{"a": "theirs"}, "metadata": map[string]any{"name": "new"}}
			},
		},
		{
			name: "a field that was changed, one that was added, one that was removed",
			write: func(t *testing.T, f *fake) []Change {
				return []Change{f.set(t, cm("a"), "data.a", "9"), f.set(t, cm("a"), "data.new", "9"), f.set(t, cm("a"), "data.b", nil)}
			}, done: "put back data.a",
		},
		{
			name: "others' fields stay",
			write: func(t *testing.T, f *fake) []Change {
				return []Change{f.set(t, cm("a"), "data.a", "9"), f.set(t, cm("a"), "metadata.labels.mine", "1")}
			},
			others: func(t *testing.T, f *fake) {
				f.set(t, cm("a"), "data.theirs", "x")
				f.set(t, cm("a"), "metadata.labels.theirs", "x")
			},
			want: func(s map[string]any) {
				setField(s["configmaps a in shop"].(map[string]any), "data.theirs", "x")
				setField(s["configmaps a in shop"].(map[string]any), "metadata.labels.theirs", "x")
			},
		},
		{
			name: "a field that an autoscaler has changed since",
			write: func(t *testing.T, f *fake) []Change {
				return []Change{f.set(t, hpaScaled, "spec.replicas", 3)}
			},
			others: func(t *testing.T, f *fake) { f.set(t, hpaScaled, "spec.replicas", 5) },
			done:   "somebody else had changed spec.replicas since",
		},
		{
			name: "lists by name: a sidecar of somebody else's stays",
			write: func(t *testing.T, f *fake) []Change {
				return []Change{f.write(t, deployment, func() error {
					o, _ := f.Get(t.Context(), deployment)
					c := spec(o)["containers"].([]any)
					c[0].(map[string]any)["image"] = "web:broken"
					_, err := f.Update(t.Context(), deployment, "", o)
					return err
				})}
			},
			others: func(t *testing.T, f *fake) {
				o, _ := f.Get(t.Context(), deployment)
				spec(o)["containers"] = append(spec(o)["containers"].([]any), map[string]any{"name": "sidecar"})
				if _, err := f.Update(t.Context(), deployment, "", o); err != nil {
					t.Fatal(err)
				}
			},
			done: "spec.containers[web].image",
			want: func(s map[string]any) {
				sp := spec(s["deployments.apps web in shop"].(map[string]any))
				sp["containers"] = append(sp["containers"].([]any), map[string]any{"name": "sidecar"})
			},
		},
		{
			name: "an object that was made immutable",
			write: func(t *testing.T, f *fake) []Change {
				return []Change{f.set(t, cm("a"), "immutable", true)}
			}, done: "deleted and created anew as it was, because the API does not let it be changed back",
		},
		{
			name: "an object that was deleted and created anew, by turns",
			write: func(t *testing.T, f *fake) []Change {
				return []Change{
					f.set(t, cm("a"), "data.a", "2"), f.delete(t, cm("a")), f.create(t, cm("a"), `{"data":{"other":"1"}}`),
					f.set(t, cm("a"), "data.other", "2"), f.delete(t, cm("a")), f.create(t, cm("a"), `{"data":{"z":"1"}}`),
				}
			},
		},
		{
			name: "an object that waits for a finalizer to be deleted",
			write: func(t *testing.T, f *fake) []Change {
				return []Change{f.delete(t, cm("finalized"))}
			}, done: "created anew",
		},
		{
			name: "an owner with its child: the child has the new owner",
			write: func(t *testing.T, f *fake) []Change {
				child := f.delete(t, cm("child"))
				return []Change{child, f.delete(t, cm("owner"))}
			},
			want: func(s map[string]any) {
				refs := owners(s["configmaps child in shop"].(map[string]any))
				refs[0].(map[string]any)["uid"] = "anew"
			},
		},
		{
			name: "a workload with its releases",
			write: func(t *testing.T, f *fake) []Change {
				o, _ := f.Get(t.Context(), rs)
				c := f.delete(t, deployment)
				c.Children = []Object{{Ref: rs, Before: raw(o)}}
				return []Change{c}
			},
			done: "1 of what it owned created anew",
			want: func(s map[string]any) {
				delete(metadata(s["replicasets.apps web-1 in shop"].(map[string]any)), "ownerReferences")
			},
		},
		{
			name: "a pod of a workload",
			write: func(t *testing.T, f *fake) []Change {
				return []Change{f.delete(t, ref("", "pods", "web-1-x"))}
			},
			done: "left to its ReplicaSet web-1",
			want: func(s map[string]any) { delete(s, "pods web-1-x in shop") },
		},
		{
			name: "a Job that has ended",
			write: func(t *testing.T, f *fake) []Change {
				return []Change{f.delete(t, ref("batch", "jobs", "done"))}
			},
			left: "had ended and would run again",
			want: func(s map[string]any) { delete(s, "jobs.batch done in shop") },
		},
		{
			name: "a Service whose address is taken",
			write: func(t *testing.T, f *fake) []Change {
				c := f.delete(t, ref("", "services", "web"))
				o := decode(c.Objects[0].Before)
				spec(o)["clusterIP"] = "taken"
				c.Objects[0].Before = raw(o)
				return []Change{c}
			},
			left: "has another address",
			want: func(s map[string]any) { delete(spec(s["services web in shop"].(map[string]any)), "clusterIP") },
		},
		{
			name: "finalizers as a set",
			write: func(t *testing.T, f *fake) []Change {
				return []Change{f.set(t, cm("a"), "metadata.finalizers", []any{"mine"})}
			},
			others: func(t *testing.T, f *fake) { f.set(t, cm("a"), "metadata.finalizers", []any{"mine", "theirs"}) },
			want: func(s map[string]any) {
				setField(s["configmaps a in shop"].(map[string]any), "metadata.finalizers", []any{"theirs"})
			},
		},
		{
			name: "a finalizer that held up a deletion",
			write: func(t *testing.T, f *fake) []Change {
				return []Change{f.set(t, cm("stuck"), "metadata.finalizers", []any{})}
			}, done: "so it waits for them again",
		},
		{
			name: "what cannot be taken back is said",
			write: func(*testing.T, *fake) []Change {
				return []Change{{Seq: 1, What: "connect pods/exec", Never: "a command in a container"}}
			}, left: "a command in a container",
		},
		{
			name: "status",
			write: func(t *testing.T, f *fake) []Change {
				c := f.write(t, cm("a"), func() error {
					o, _ := f.Get(t.Context(), cm("a"))
					o["status"] = map[string]any{"phase": "broken"}
					_, err := f.Update(t.Context(), cm("a"), "status", o)
					return err
				})
				c.Subresource = "status"
				return []Change{c}
			}, done: "put back status",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.create(t, cm("a"), `{"data":{"a":"1","b":"2"}}`)
			f.create(t, cm("finalized"), finalized)
			f.create(t, cm("stuck"), finalized)
			f.delete(t, cm("stuck"))
			f.create(t, cm("owner"), `{}`)
			f.create(t, cm("child"), `{"metadata":{"ownerReferences":[{"kind":"ConfigMap","name":"owner","uid":"`+uid(f.objects[cm("owner")])+`"}]}}`)
			f.create(t, deployment, `{"spec":{"containers":[{"name":"web","image":"web:1"}]}}`)
			f.create(t, rs, `{"metadata":{"ownerReferences":[{"kind":"Deployment","name":"web","controller":true,"uid":"`+uid(f.objects[deployment])+`"}]}}`)
			f.create(t, hpaScaled, `{"spec":{"replicas":1}}`)
			f.create(t, ref("", "pods", "web-1-x"), `{"metadata":{"ownerReferences":[{"kind":"ReplicaSet","name":"web-1","controller":true,"uid":"x"}]}}`)
			f.create(t, ref("batch", "jobs", "done"), `{"status":{"conditions":[{"type":"Complete","status":"True"}]}}`)
			f.create(t, ref("", "services", "web"), `{"spec":{"clusterIP":"10.0.0.1","ports":[{"port":80,"nodePort":30000}]}}`)
			want := f.state()
			changes := tt.write(t, f)
			if tt.others != nil {
				tt.others(t, f)
			}
			if tt.want != nil {
				tt.want(want)
			}
			u := New(f)
			done, left := undoAll(t, u, changes)
			if !strings.Contains(done, tt.done) || !strings.Contains(left, tt.left) || tt.left == "" && left != "" {
				t.Errorf("done: %s\nleft: %s\nwant %q and %q", done, left, tt.done, tt.left)
			}
			got := f.state()
			if tt.name == "an owner with its child: the child has the new owner" {
				want["configmaps child in shop"] = u.expected(want["configmaps child in shop"].(map[string]any))
				setField(want["configmaps child in shop"].(map[string]any), "metadata.ownerReferences",
					[]any{map[string]any{"kind": "ConfigMap", "name": "owner", "uid": uid(f.objects[cm("owner")])}})
			}
			switch tt.name {
			case "a Service whose address is taken":
				delete(spec(want["services web in shop"].(map[string]any))["ports"].([]any)[0].(map[string]any), "nodePort")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("it is not as it was:\n%s", diff)
			}
			if tt.left == "" {
				if d, err := u.Verify(t.Context(), changes); err != nil || len(d) > 0 {
					t.Errorf("differences %v, %v", d, err)
				}
			}
		})
	}
}

// TestVerifySees shows that a difference that is not explained is found.
func TestVerifySees(t *testing.T) {
	f := newFake()
	f.create(t, cm("a"), `{"data":{"a":"1"}}`)
	changes := []Change{f.set(t, cm("a"), "data.a", "2"), f.create(t, cm("new"), `{}`), f.delete(t, cm("a"))}
	d, err := New(f).Verify(t.Context(), changes)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"configmaps a in shop is not there, and was", "configmaps new in shop is there, and was not"}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	f.create(t, cm("a"), `{"data":{"a":"3","theirs":"x"}}`)
	f.delete(t, cm("new"))
	if d, _ = New(f).Verify(t.Context(), changes[:1]); !slices.Equal(d, []string{"configmaps a in shop: data.a"}) {
		t.Errorf("%v", d)
	}
}

// TestBusyObject is written by somebody else all the time.
func TestBusyObject(t *testing.T) {
	f := newFake()
	f.create(t, cm("a"), `{"data":{"a":"1"}}`)
	c := f.set(t, cm("a"), "data.a", "2")
	f.busy = 3
	if o := New(f).Undo(t.Context(), c); len(o.Left) > 0 || f.objects[cm("a")]["data"].(map[string]any)["a"] != "1" {
		t.Errorf("%+v", o)
	}
	c = f.set(t, cm("a"), "data.a", "2")
	f.busy = 1000
	if o := New(f).Undo(t.Context(), c); !strings.Contains(strings.Join(o.Left, ""), "changes all the time") {
		t.Errorf("%+v", o)
	}
}
