package guard

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// data is the field "data" of a document, in short.
func data(t *testing.T, doc json.RawMessage) string {
	t.Helper()
	if doc == nil {
		return "nothing"
	}
	if strings.Contains(string(doc), "managedFields") {
		t.Errorf("managed fields in %s", doc)
	}
	var o struct{ Data map[string]string }
	if err := json.Unmarshal(doc, &o); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	return o.Data["a"]
}

func TestJournal(t *testing.T) {
	s := newSetup(t)
	config := rest.CopyConfig(s.config)
	config.UserAgent = "kubectl/v1"
	c := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("shop")
	ctx := t.Context()
	cm := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Data: map[string]string{"a": "1"}}
	check := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(c.Create(ctx, cm, metav1.CreateOptions{}))
	cm.Data["a"] = "2"
	check(c.Update(ctx, cm, metav1.UpdateOptions{}))
	check(c.Patch(ctx, "x", types.MergePatchType, []byte(`{"data":{"a":"3"}}`), metav1.PatchOptions{DryRun: []string{"All"}}))
	check(c.Apply(ctx, corev1ac.ConfigMap("x", "shop").WithData(map[string]string{"a": "4"}), metav1.ApplyOptions{FieldManager: "kubectl"}))
	check(nil, c.Delete(ctx, "x", metav1.DeleteOptions{DryRun: []string{"All"}}))
	if err := c.Delete(ctx, "x", metav1.DeleteOptions{}); err == nil {
		t.Fatal("it was deleted twice") // The fake does not know dry runs.
	}

	var got []string
	for i, e := range s.journal() {
		if e.Seq != i+1 || e.Time.IsZero() || e.UserAgent != "kubectl/v1" || e.Version != "v1" || e.Resource != "configmaps" || e.Namespace != "shop" || e.Name != "x" {
			t.Errorf("%+v", e)
		}
		request := "nothing"
		if e.Verb != "delete" {
			request = data(t, e.Request)
		}
		got = append(got, fmt.Sprintf("%s %d: %s, %s to %s, dry run %v", e.Verb, e.Status, request, data(t, e.Before), data(t, e.After), e.DryRun))
	}
	want := []string{
		"create 201: 1, nothing to 1, dry run false",
		"update 200: 2, 1 to 2, dry run false",
		"patch 200: 3, 2 to 3, dry run true",
		"patch 200: 4, 2 to 4, dry run false",
		"delete 200: nothing, 4 to nothing, dry run true",
		"delete 404: nothing, nothing to nothing, dry run false",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	j := s.journal()
	if j[3].ContentType != "application/apply-patch+yaml" || j[5].Error != `configmaps "x" not found` {
		t.Errorf("%+v", j)
	}
	if b, err := json.Marshal(j[5]); err != nil || !strings.Contains(string(b), `"status":404,"error":"configmaps \"x\" not found"`) {
		t.Errorf("%s, %v", b, err)
	}
}

func TestJournalOfSubresources(t *testing.T) {
	s := newSetup(t)
	s.add(t, pods+"/web", `{"kind":"Pod","apiVersion":"v1","data":{"a":"1"}}`)
	if code, body := s.do(t, "POST", pods+"/web/eviction", `{"kind":"Eviction"}`); code != 201 {
		t.Fatalf("%d %s", code, body)
	}
	// A review is no write.
	s.do(t, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"metadata":{"name":"x"}}`)
	j := s.journal()
	if len(j) != 1 || j[0].Subresource != "eviction" || data(t, j[0].Before) != "1" || data(t, j[0].After) != "1" {
		t.Errorf("%+v", j)
	}
}

func TestJournalIsBounded(t *testing.T) {
	s := newSetup(t)
	large := `{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"` + strings.Repeat("x", MaxRecorded) + `"}}`
	s.add(t, "/api/v1/namespaces/shop/configmaps/x", large)
	if code, body := s.do(t, "PUT", "/api/v1/namespaces/shop/configmaps/x", large); code != 200 {
		t.Fatalf("%d %.100s", code, body)
	}
	e := s.journal()[0]
	if e.Request != nil || e.Before != nil || e.After != nil || len(e.Cut) != 3 || e.Cut["before"] <= MaxRecorded {
		t.Errorf("%d %d %d, cut %v", len(e.Request), len(e.Before), len(e.After), e.Cut)
	}
	s.do(t, "POST", "/api/v1/namespaces/shop/configmaps", "\xff\xfe", "Content-Type", "application/cbor")
	if e := s.journal()[1]; e.Request != nil || e.Cut["request"] != 2 {
		t.Errorf("%+v", e)
	}
}

// TestJournalOrder writes from many clients: each entry comes alone, and its number is its place.
func TestJournalOrder(t *testing.T) {
	s := newSetup(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			s.do(t, "POST", "/api/v1/namespaces/shop/configmaps", fmt.Sprintf(`{"kind":"ConfigMap","metadata":{"name":"c%d"}}`, i))
		})
	}
	wg.Wait()
	j := s.journal()
	for i, e := range j {
		if e.Seq != i+1 || !strings.HasPrefix(e.Name, "c") {
			t.Errorf("%d: %+v", i, e)
		}
	}
	if len(j) != 20 {
		t.Errorf("%d entries", len(j))
	}
}
