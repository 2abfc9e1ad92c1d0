package change

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const pod = `
metadata: {labels: {app: cart}}
spec:
  containers:
  - name: cart
    image: shop/cart:v1
    command: [cart]
    args: ["--stock=stock:80", "--advertise=mail:25"]
    env:
    - {name: REDIS_ADDRESS, value: "redis:6379"}
    - {name: QUEUE, value: "amqp://user:word@rabbitmq:5672/"}
    - {name: SERVICE_NAME, value: redis}
    - {name: ELSEWHERE, value: "example.com:80"}
    - {name: SECRET, valueFrom: {secretKeyRef: {name: s, key: k}}}
    livenessProbe: {tcpSocket: {port: 80}, failureThreshold: 10}
    readinessProbe: {tcpSocket: {port: 80}, periodSeconds: 1}
    resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {cpu: "1", memory: 256Mi}}
`

func template(t *testing.T, text string) (m map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func shop() *World {
	return &World{
		Namespace: "shop", Services: []string{"redis", "rabbitmq", "stock", "mail"},
		OtherImage: func(image string) string {
			return Later(image, func(i string) bool { return i == "shop/cart:v1.1" })
		},
		Program: func(image, name string) string {
			if image == "shop/cart:v1" && name == "cart" {
				return "/app/cart"
			}
			return ""
		},
	}
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// What a release changes is what its kinds say, and all of it makes no difference.
func TestKinds(t *testing.T) {
	container := func(m map[string]any) map[string]any { return first(m) }
	for _, k := range kinds() {
		seen := map[string]bool{}
		for seed := range uint64(60) {
			m := template(t, pod)
			if !k.change(shop(), random(seed), m) {
				continue
			}
			before := template(t, pod)
			if cmp.Equal(before, m) {
				t.Errorf("%s says that it changes something, and does not", k.name)
			}
			switch c, was := container(m), container(before); k.name {
			case "address":
				seen[fmt.Sprint(c["args"], c["env"])] = true
				for i, v := range variables(c) {
					value := fmt.Sprint(v["value"])
					if short := strings.ReplaceAll(strings.ReplaceAll(value, ".shop.svc", ""), ".shop", ""); short != fmt.Sprint(variables(was)[i]["value"]) {
						t.Errorf("%v became %s", variables(was)[i], value)
					}
				}
				delete(c, "env")
				delete(was, "env")
				if !strings.Contains(fmt.Sprint(c["args"]), "--advertise=mail:25") {
					t.Errorf("args %v", c["args"])
				}
				delete(c, "args")
				delete(was, "args")
			case "image":
				seen[fmt.Sprint(c["image"])] = true
				c["image"] = was["image"]
			case "command":
				seen[fmt.Sprint(c["command"])] = true
				c["command"] = was["command"]
			case "variable":
				list := variables(c)
				seen[fmt.Sprint(list[len(list)-1])] = true
				c["env"] = c["env"].([]any)[:len(list)-1]
			case "request", "limit":
				seen[fmt.Sprint(c["resources"])] = true
				c["resources"] = was["resources"]
			case "probe":
				seen[fmt.Sprint(c["livenessProbe"], c["readinessProbe"])] = true
				c["livenessProbe"], c["readinessProbe"] = was["livenessProbe"], was["readinessProbe"]
			default:
				seen[fmt.Sprint(m)] = true
				m = before
			}
			if diff := cmp.Diff(before, m); diff != "" {
				t.Errorf("%s also changes %s", k.name, diff)
			}
		}
		least := map[string]int{"address": 6, "image": 2, "command": 1, "node selector": 1, "probe": 4}[k.name]
		if len(seen) < max(1, least) {
			t.Errorf("%s makes %v", k.name, slices.Sorted(maps.Keys(seen)))
		}
	}
}

// Where nobody knows of room, nothing asks for more.
func TestTight(t *testing.T) {
	w := shop()
	w.Tight = true
	for seed := range uint64(100) {
		m := template(t, pod)
		if setLimit(w, random(seed), m) {
			t.Fatal("a limit was raised")
		}
		setRequest(w, random(seed), m)
		requests := first(m)["resources"].(map[string]any)["requests"].(map[string]any)
		for name, most := range map[string]string{"cpu": "50m", "memory": "64Mi"} {
			if got := fmt.Sprint(requests[name]); len(got) > len(most) || len(got) == len(most) && got > most {
				t.Errorf("%s is %s", name, got)
			}
		}
	}
}

// A release has one to three differences; one that was made already counts as one of them. One seed makes one release.
func TestRelease(t *testing.T) {
	counts, less, kinds := map[int]int{}, map[int]int{}, map[string]int{}
	const seeds = 3000
	for seed := range uint64(seeds) {
		m, again, made := template(t, pod), template(t, pod), template(t, pod)
		names := shop().Release(random(seed), m, 0)
		if other := shop().Release(random(seed), again, 0); !slices.Equal(names, other) || !cmp.Equal(m, again) {
			t.Fatalf("%v and %v of one seed", names, other)
		}
		counts[len(names)]++
		less[len(shop().Release(random(seed), made, 1))]++
		for _, n := range names {
			kinds[n]++
		}
	}
	for n := 1; n <= Most; n++ {
		if counts[n] < seeds/4 || less[n-1] != counts[n] {
			t.Errorf("%v releases by how many differences they have, %v if one is there", counts, less)
		}
	}
	// Of the kinds that mistakes are of there is one in every few services.
	for _, name := range []string{"address", "image", "command", "node selector"} {
		if kinds[name] < seeds/5 {
			t.Errorf("%v", kinds)
		}
	}
}

// What an older release has is taken back as well: a variable gets another value, a selector goes.
func TestReleasesBefore(t *testing.T) {
	m := template(t, pod)
	r := random(1)
	for range 40 {
		shop().Release(r, m, 0)
	}
	names := map[string]bool{}
	for _, v := range variables(first(m)) {
		if name := fmt.Sprint(v["name"]); names[name] {
			t.Errorf("%s is there twice", name)
		} else {
			names[name] = true
		}
	}
	if image := first(m)["image"]; image != "shop/cart:v1" && image != "docker.io/shop/cart:v1" && image != "shop/cart:v1.1" && image != "docker.io/shop/cart:v1.1" {
		t.Errorf("the image is %v", image)
	}
}

func TestImages(t *testing.T) {
	there := func(list ...string) func(string) bool {
		return func(i string) bool { return slices.Contains(list, i) }
	}
	for _, c := range []struct{ image, exists, earlier, later string }{
		{"mongo:4.4.6", "mongo:4.4.5 mongo:4.4.4 mongo:4.4.7", "mongo:4.4.5 mongo:4.4.4", "mongo:4.4.7"},
		{"shop:v1", "shop:v1.1", "", "shop:v1.1"},
		{"shop:v1", "", "", ""},
		{"shop", "shop:1 shop.1", "", ""},
		{"shop@sha256:0a1", "shop@sha256:0a2 shop@sha256:0a1.1", "", ""},
		{"host:5000/shop", "host:5001/shop host:5000/shop.1", "", ""},
		{"redis:alpine", "redis:alpine.1", "", "redis:alpine.1"},
	} {
		exists := there(strings.Fields(c.exists)...)
		if got := strings.Join(Earlier(c.image, exists), " "); got != c.earlier {
			t.Errorf("before %s: %q", c.image, got)
		}
		if got := Later(c.image, exists); got != c.later {
			t.Errorf("after %s: %q", c.image, got)
		}
	}
	for image, want := range map[string]string{
		"mongo:4.4.6": "docker.io/library/mongo:4.4.6", "docker.io/aiopslab/x:v1": "aiopslab/x:v1", "ghcr.io/a/b:1": "", "NO": "",
	} {
		if got := respelled(image); got != want {
			t.Errorf("%s is spelled %q", image, got)
		}
	}
}
