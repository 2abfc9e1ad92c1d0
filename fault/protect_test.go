package fault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/aiopslab/aiopslab/app"
	questions "github.com/aiopslab/aiopslab/app/ask"
)

const guestbook = `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: web, image: web, ports: [{containerPort: 80}]}]}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: db}, spec: {template: {spec: {containers: [{name: db, image: mysql, env: [{name: MYSQL_ROOT_PASSWORD, value: x}], ports: [{containerPort: 3306}]}]}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {ports: [{port: 3306}]}}
`

// A login that has leaked is gone when the store refuses it, the Secret has another that the store takes, and the
// clients work. Half of that is not enough.
func TestLeaked(t *testing.T) {
	old, new := questions.Login{User: "web", Password: "leaked"}, questions.Login{User: "web", Password: "new"}
	down, denied := errors.New("connection refused"), questions.ErrRefused
	for name, tt := range map[string]struct {
		secret *questions.Login // nil if it is gone
		takes  []questions.Login
		pod    []questions.Login // that a pod takes which is not behind the Service
		store  error             // of the store, for everybody
		client error
		want   string
	}{
		"nothing done":        {&old, []questions.Login{old}, nil, nil, nil, "the Secret db still has the leaked password, under password"},
		"only the Secret":     {&new, []questions.Login{old}, nil, nil, nil, "db still lets the leaked login in"},
		"only the store":      {&old, []questions.Login{new}, nil, nil, denied, "the Secret db still has the leaked password"},
		"both are good":       {&new, []questions.Login{old, new}, nil, nil, nil, "db still lets the leaked login in"},
		"no Secret any more":  {nil, []questions.Login{new}, nil, nil, nil, "the Secret db is gone"},
		"no store any more":   {&new, nil, nil, down, nil, "db does not say whether it would let the leaked login in: connection refused"},
		"nobody gets in":      {&new, nil, nil, nil, denied, "db does not let in what the Secret db has"},
		"a client left out":   {&new, []questions.Login{new}, nil, nil, errors.New("503"), "web does not get on with db: 503"},
		"rotated":             {&new, []questions.Login{new}, nil, nil, nil, ""},
		"with another suffix": {&questions.Login{User: "web", Password: "leaked2"}, nil, nil, nil, nil, "still has the leaked password"},
		"another store":       {&new, []questions.Login{new}, []questions.Login{old}, nil, nil, "the pod db-0 still lets the leaked login in"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if s := tt.secret; s != nil {
				objects = append(objects, &v1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "db"},
					Data:       map[string][]byte{"username": []byte(s.User), "password": []byte(s.Password)},
				})
			}
			objects = append(objects, &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "db-0", Labels: map[string]string{"app": "db"}},
				Status:     v1.PodStatus{PodIP: "10.0.0.1"},
			})
			store := func(ctx context.Context, _ questions.Dial, address string) error {
				takes := tt.takes
				if address == "10.0.0.1:3306" {
					takes = tt.pod
				}
				login, _ := questions.LoginOf(ctx)
				switch {
				case tt.store != nil:
					return tt.store
				case slices.Contains(takes, login):
					return nil
				}
				return denied
			}
			a := &app.App{
				Name: "guestbook " + name, Namespace: "test", Label: "app",
				Manifests: fstest.MapFS{"all.yaml": {Data: []byte(guestbook)}},
				Services: []app.Service{
					{Name: "web", Kind: "service", Calls: []string{"db"}, Ask: func(context.Context, questions.Dial, string) error { return tt.client }},
					{Name: "db", Kind: "infrastructure", Port: 3306, Secret: "db", Ask: store},
				},
			}
			f := bind(t, "leaked_credential", a, "db", "").(*leaked)
			e := &Env{Client: fake.NewClientset(objects...), App: a}
			if symptom, err := f.Manifest(t.Context(), e); symptom != "" || err != nil {
				t.Errorf("before an injection: %q, %v", symptom, err)
			}
			f.before, f.login = map[string][]byte{}, old
			symptom, err := f.Manifest(t.Context(), e)
			if err != nil || (symptom == "") != (tt.want == "") || !strings.Contains(symptom, tt.want) {
				t.Errorf("%q, %v, want %q", symptom, err, tt.want)
			}
		})
	}
}

// What is drawn is the seed's, and no other's.
func TestDraw(t *testing.T) {
	one, two := &Env{Seed: 1}, &Env{Seed: 2}
	draw := func(e *Env, purpose string) string { return e.draw(purpose, passwordLetters, passwordLength) }
	if a, b := draw(one, "db"), draw(one, "db"); a != b || len(a) != passwordLength {
		t.Errorf("%q and %q of one seed", a, b)
	}
	if draw(one, "db") == draw(two, "db") || draw(one, "db") == draw(one, "queue") {
		t.Error("two passwords are the same")
	}
	first := map[string]bool{}
	for seed := range uint64(40) {
		first[(&Env{Seed: seed}).pick("clients", partners)[0]] = true
	}
	if len(first) != len(partners) {
		t.Errorf("of %d seeds, the hostile client is one of %v", 40, first)
	}
}

// A hostile client is blocked when it tries and gets nothing while the other is served, and neither was touched.
func TestHostile(t *testing.T) {
	f := &hostile{hostileClientParams: hostileClientParams{Namespace: "partners"}, service: "front-end"}
	one := int32(1)
	for _, name := range []string{"price-watch", "newsletter"} {
		f.made = append(f.made, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "partners", Name: name, UID: "1"},
			Spec:       appsv1.DeploymentSpec{Replicas: &one}, Status: appsv1.DeploymentStatus{ReadyReplicas: 1},
		})
	}
	for name, tt := range map[string]struct {
		bad, fair string // accounts
		want      string
	}{
		"nothing done":      {"200\n200\n", "200\n", "price-watch of partners got 2 answers from front-end"},
		"a few get through": {"000\n200\n000\n", "200\n", "got 1 answers"},
		"refused in words":  {"429\n", "200\n", "got 1 answers"},
		"stopped":           {"", "200\n", "stopped, not blocked"},
		"both are blocked":  {"000\n", "000\n", "newsletter of partners, which does no harm, is not served"},
		"blocked":           {"000\n000\n", "200\n000\n", ""},
		"odd lines":         {"curl: (28) timeout\n000\n", "200\n\n", ""},
	} {
		read := func(text string) ledger { return ledger{}.read(strings.NewReader(text)) }
		if got := f.judge(read(tt.bad), read(tt.fair)); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	for name, tt := range map[string]struct {
		change func(first *appsv1.Deployment) runtime.Object // nil if there is no such Deployment any more
		policy bool
		want   string
	}{
		"untouched":  {func(d *appsv1.Deployment) runtime.Object { return d }, false, ""},
		"scaled":     {func(d *appsv1.Deployment) runtime.Object { none := int32(0); d.Spec.Replicas = &none; return d }, false, "price-watch of partners was changed"},
		"made anew":  {func(d *appsv1.Deployment) runtime.Object { d.UID = "2"; return d }, false, "was changed"},
		"not ready":  {func(d *appsv1.Deployment) runtime.Object { d.Status.ReadyReplicas = 0; return d }, false, "does not run"},
		"gone":       {func(*appsv1.Deployment) runtime.Object { return nil }, false, "price-watch of partners is gone"},
		"a policy":   {func(d *appsv1.Deployment) runtime.Object { return d }, true, "there is a NetworkPolicy in partners"},
		"both of it": {func(*appsv1.Deployment) runtime.Object { return nil }, true, "NetworkPolicy"},
	} {
		objects := []runtime.Object{f.made[1].DeepCopy()}
		if d := tt.change(f.made[0].DeepCopy()); d != nil {
			objects = append(objects, d)
		}
		if tt.policy {
			objects = append(objects, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "partners", Name: "x"}})
		}
		got, err := f.meddled(t.Context(), &Env{Client: fake.NewClientset(objects...)})
		if err != nil || (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tt.want)
		}
	}
}
