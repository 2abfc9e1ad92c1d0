package tidb

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	images "github.com/aiopslab/aiopslab/image/tidb"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
	"github.com/aiopslab/aiopslab/kit/past"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bankOf starts a bank with a database of one server each, and returns a machine beside it.
func bankOf(t *testing.T) *kittest.Machine {
	t.Helper()
	user, _ := recallable(t)
	return user
}

// recallable starts a bank, and returns what has it write its past, too.
func recallable(t *testing.T) (user *kittest.Machine, recall func(*past.Past) error) {
	t.Helper()
	var mu sync.Mutex
	var keeper func(context.Context, *past.Past) error
	recall = func(p *past.Past) error {
		mu.Lock()
		defer mu.Unlock()
		return keeper(t.Context(), p)
	}
	w := kittest.New(t)
	programs := map[string]kit.Program{"bank": bankMain}
	for _, i := range images.Images(nil) {
		for path, p := range i.Programs {
			programs[path] = p
		}
	}
	for i, args := range [][]string{
		{"/pd-server", "--name=pd-0", "--advertise-client-urls=http://pd-0.peer:2379", "--advertise-peer-urls=http://pd-0.peer:2380"},
		{"/tikv-server", "--pd=http://pd-0.peer:2379", "--advertise-addr=tikv-0.peer:20160"},
		{"/tidb-server", "--store=tikv", "--path=pd-0.peer:2379"},
		{"bank"},
	} {
		name := []string{"pd-0.peer", "tikv-0.peer", "basic-tidb", "bank"}[i]
		address := fmt.Sprintf("10.244.0.%d", i+1)
		m := w.Machine(strings.TrimSuffix(name, ".peer"), address)
		w.Name(name, address)
		env := m.Env(args...)
		env.OnRecall(func(as kit.Telling, f func(context.Context, *past.Past) error) {
			mu.Lock()
			defer mu.Unlock()
			if as == kit.Keeper && name == "bank" {
				keeper = f
			}
		})
		m.Run(programs[args[0]], env)
		if name == "bank" {
			m.WaitListen(":8080")
		}
	}
	return w.Machine("user", "10.244.9.9"), recall
}

// What was sent is there, and no money is made or lost.
func TestBank(t *testing.T) {
	user := bankOf(t)
	form := url.Values{"from": {"1"}, "to": {"2"}, "cents": {"250"}, "note": {"for 'lunch'"}}.Encode()
	r := kittest.Ask(t, user, "POST", "http://bank:8080/transfers", form, "Content-Type: application/x-www-form-urlencoded")
	var sent transfer
	if err := json.Unmarshal([]byte(r.Body), &sent); err != nil || sent.ID != firstTransfer {
		t.Fatalf("%+v, %v", r, err)
	}
	for path, want := range map[string]string{
		"/accounts/1":           `{"id":1,"owner":"customer-1","cents":99750}`,
		"/accounts/2":           `{"id":2,"owner":"customer-2","cents":100250}`,
		"/transfers/5000001":    `"cents":250,"note":"for 'lunch'"`,
		"/accounts/2/transfers": `"note":"for 'lunch'"`,
		"/total":                `{"accounts":200,"cents":20000000}`,
		"/accounts/999":         "there is none",
		"/accounts/x":           "want a number",
	} {
		if got := kittest.Get(t, user, "http://bank:8080"+path); !strings.Contains(got.Body, want) {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
	form = url.Values{"from": {"1"}, "to": {"2"}, "cents": {"99999999"}}.Encode()
	r = kittest.Ask(t, user, "POST", "http://bank:8080/transfers", form, "Content-Type: application/x-www-form-urlencoded")
	if r.Code != 409 {
		t.Errorf("an account was overdrawn: %+v", r)
	}
	for name, address := range map[string]string{
		"bank": "bank:8080", "basic-tidb": "basic-tidb:4000", "basic-pd": "pd-0.peer:2379",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if err := questions[name](ctx, user.Env().Net.DialContext, address); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := questions["basic-tidb"](ctx, user.Env().Net.DialContext, "bank:8080"); err == nil {
		t.Error("a bank passes for a database")
	}
}

// What the services are called is what is deployed, by the manifests or by the operator.
func TestManifests(t *testing.T) {
	a := App()
	objects, err := manifest.Read(a.Manifests)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, u := range objects {
		names[u.GetKind()+"/"+u.GetName()] = true
		if u.GetKind() == "TidbCluster" {
			for _, component := range []string{"pd", "tikv", "tidb"} {
				names["Deployment/"+u.GetName()+"-"+component] = true
			}
		}
	}
	for _, s := range a.Services {
		if !names["Deployment/"+s.Name] {
			t.Errorf("nobody makes %s", s.Name)
		}
		for _, c := range s.Calls {
			if _, ok := a.Service(c); !ok {
				t.Errorf("%s calls %s, which does not exist", s.Name, c)
			}
		}
	}
	if n := len(manifest.Defined(objects)); n != 1 {
		t.Errorf("%d custom resources", n)
	}
	if got := fmt.Sprint(manifest.Resources(objects)); got != "[tidbclusters.pingcap.com]" {
		t.Errorf("the kinds of its own are %s", got)
	}
	images := map[string]bool{}
	manifest.EachImage(objects, func(image string, _ func(string)) { images[image] = true })
	for _, want := range []string{"pingcap/pd:v8.1.0", "pingcap/tikv:v8.1.0", "pingcap/tidb:v8.1.0", "aiopslab/bank:v1"} {
		if !images[want] {
			t.Errorf("%s is not among %v", want, images)
		}
	}
}
