package inclustertest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

const (
	port  = "6443"
	token = "the-token-of-the-service-account"
	// accounts is where a pod's service account is mounted.
	accounts = "/var/run/secrets/kubernetes.io/serviceaccount/"
)

// Object is any Kubernetes object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Server is an API server.
type Server struct {
	t    testing.TB
	addr string
	cert tls.Certificate

	mu      sync.Mutex
	version int
	objects map[string]object // by collection, namespace and name
	events  []event
	changed chan struct{} // closed at the next event
}

// object is an object as it is sent.
type object struct {
	collection, namespace string
	json                  json.RawMessage
}

type event struct {
	version int
	object
	Type string
}

// Start runs an API server on a machine of its own until the test ends.
func Start(t testing.TB, w *kittest.World, addr string) *Server {
	t.Helper()
	s := &Server{
		t: t, addr: addr, cert: Certificate(t, addr), objects: map[string]object{},
		changed: make(chan struct{}),
	}
	ln, err := w.Machine("apiserver", addr).Env().Net.Listen("tcp", ":"+port)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{
		Handler: s, TLSConfig: &tls.Config{Certificates: []tls.Certificate{s.cert}},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := kit.IgnoreClosed(srv.ServeTLS(ln, "", "")); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	return s
}

// Certificate makes a self-signed certificate for an address.
func Certificate(t testing.TB, addr string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: addr}, IPAddresses: []net.IP{net.ParseIP(addr)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// PEM is the text form of a certificate.
func PEM(c tls.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}))
}

// Pod gives a machine the service account and the variables of a pod.
func (s *Server) Pod(m *kittest.Machine) {
	if m.Vars == nil {
		m.Vars = map[string]string{}
	}
	m.Vars["KUBERNETES_SERVICE_HOST"], m.Vars["KUBERNETES_SERVICE_PORT"] = s.addr, port
	m.Write(accounts+"ca.crt", PEM(s.cert))
	m.Write(accounts+"token", token)
	m.Write(accounts+"namespace", "test")
}

// Authorized reports whether a request shows the pods' token.
func Authorized(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+token }

// Set creates or replaces an object. The version is as in a manifest, "v1" or "apps/v1".
func (s *Server) Set(version, resource string, o Object) {
	s.t.Helper()
	s.put("ADDED", version, resource, o)
}

// Delete removes an object.
func (s *Server) Delete(version, resource string, o Object) {
	s.t.Helper()
	s.put("DELETED", version, resource, o)
}

func (s *Server) put(kind, version, resource string, o Object) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		s.t.Fatal(err)
	}
	o.GetObjectKind().SetGroupVersionKind(kinds[0])
	b, err := json.Marshal(o)
	if err != nil {
		s.t.Fatal(err)
	}
	in := object{collection: version + "/" + resource, namespace: o.GetNamespace(), json: b}
	key := in.collection + "|" + in.namespace + "|" + o.GetName()
	if _, ok := s.objects[key]; ok && kind == "ADDED" {
		kind = "MODIFIED"
	}
	if s.objects[key] = in; kind == "DELETED" {
		delete(s.objects, key)
	}
	s.events = append(s.events, event{s.version, in, kind})
	close(s.changed)
	s.changed = make(chan struct{})
}

// ServeHTTP answers lists and watches.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !Authorized(r) {
		fail(w, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/")
	namespace := ""
	if version, rest, ok := strings.Cut(path, "/namespaces/"); ok {
		ns, resource, _ := strings.Cut(rest, "/")
		namespace, path = ns, version+"/"+resource
	}
	q := r.URL.Query()
	switch {
	case r.Method != http.MethodGet:
		fail(w, apierrors.NewMethodNotSupported(metav1.Unversioned.WithResource(path).GroupResource(), r.Method))
	case q.Get("sendInitialEvents") == "true": // The client lists instead.
		fail(w, apierrors.NewInvalid(metav1.Unversioned.WithKind("ListOptions").GroupKind(), "", nil))
	case q.Get("watch") == "true", q.Get("watch") == "1":
		s.watch(w, r, path, namespace)
	default:
		s.list(w, path, namespace)
	}
}

// kindOf is the kind of a collection's objects.
func kindOf(version, resource string) string {
	gv, _ := schema.ParseGroupVersion(version)
	for kind := range scheme.Scheme.KnownTypes(gv) {
		if plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind)); plural.Resource == resource {
			return kind
		}
	}
	return ""
}

func fail(w http.ResponseWriter, err apierrors.APIStatus) {
	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

func (o object) in(collection, namespace string) bool {
	return o.collection == collection && (namespace == "" || o.namespace == namespace)
}

func (s *Server) list(w http.ResponseWriter, collection, namespace string) {
	s.mu.Lock()
	items := []json.RawMessage{}
	for _, o := range s.objects {
		if o.in(collection, namespace) {
			items = append(items, o.json)
		}
	}
	version := s.version
	s.mu.Unlock()
	i := strings.LastIndexByte(collection, '/')
	group, kind := collection[:i], kindOf(collection[:i], collection[i+1:])
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": kind + "List", "apiVersion": group,
		"metadata": map[string]string{"resourceVersion": strconv.Itoa(version)}, "items": items,
	})
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request, collection, namespace string) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for {
		s.mu.Lock()
		var b bytes.Buffer
		for _, e := range s.events {
			if e.version > from && e.in(collection, namespace) {
				_ = json.NewEncoder(&b).Encode(map[string]any{"type": e.Type, "object": e.json})
			}
		}
		from = s.version
		changed := s.changed
		s.mu.Unlock()
		_, _ = w.Write(b.Bytes())
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
