package fault

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/term"
)

// The configuration of a MongoDB server with and without TLS.
const (
	mongodDir  = "/etc/mongo"
	mongodConf = "mongod.conf"
	withoutTLS = "mode: disabled"
	withTLS    = "mode: requireTLS\n%[1]scertificateKeyFile: /etc/tls/tls.pem\n%[1]sCAFile: /etc/tls/ca.crt"
)

func authMissMongoDB() *Kind {
	return Define(Kind{
		Name:  "auth_miss_mongodb",
		Title: "A MongoDB server demands TLS, and its client has no certificate",
		Description: `The configuration of a MongoDB server is changed to demand TLS with certificates, and the server and its
client are restarted. The client has no certificate and connects in plain: it is turned away, says so
in its log, tries again, and never becomes ready. An operator allows plain connections again.`,
		Cause:   Cause{term.Application, term.Misconfiguration},
		Targets: withTLSFiles,
	}, none{}, bindAuthMiss, func(t Target, _ none) []string {
		o, _ := read(t.App)
		cm := o.mounted(t.Service, mongodDir)
		return append([]string{
			fmt.Sprintf(
				`kubectl get configmap %s -o yaml | sed -e 's/mode: requireTLS/mode: disabled/' -e '/certificateKeyFile:/d' -e '/CAFile:/d' | kubectl replace -f -`, cm),
			"kubectl rollout restart " + ref(t.App, t.Service),
			rollout(t.App, t.Service),
		}, restart(t, callers(t.App, t.Service))...)
	})
}

// withTLSFiles are an application's MongoDB servers that have a certificate and do not use it.
func withTLSFiles(a *app.App) []string {
	o, err := read(a)
	if err != nil {
		return nil
	}
	return services(a, func(s app.Service) bool {
		cm := o.mounted(s.Name, mongodDir)
		if s.Kind != "mongodb" || cm == "" || !strings.Contains(o.configMap(cm).Data[mongodConf], withoutTLS) {
			return false
		}
		for _, v := range o.controller(s.Name).template.Spec.Volumes {
			if v.Secret != nil {
				return true
			}
		}
		return false
	})
}

func bindAuthMiss(t Target, _ none) (Fault, error) {
	o, err := read(t.App)
	if err != nil {
		return nil, err
	}
	right, err := o.object(t.App, "ConfigMap", o.mounted(t.Service, mongodDir))
	if err != nil {
		return nil, err
	}
	f := &tlsRequired{server: t.Service, clients: callers(t.App, t.Service), right: right, wrong: right.DeepCopy()}
	conf, _, err := unstructured.NestedString(f.wrong.Object, "data", mongodConf)
	if err != nil {
		return nil, err
	}
	before, after, _ := strings.Cut(conf, withoutTLS)
	indent := before[strings.LastIndex(before, "\n")+1:]
	conf = before + fmt.Sprintf(withTLS, indent) + after
	return f, unstructured.SetNestedField(f.wrong.Object, conf, "data", mongodConf)
}

// tlsRequired is a MongoDB server that its client cannot talk to.
type tlsRequired struct {
	server       string
	clients      []string
	right, wrong *unstructured.Unstructured
}

func (f *tlsRequired) Inject(ctx context.Context, e *Env) error { return f.configure(ctx, e, f.wrong) }

// configure changes the server's configuration, and restarts it and its clients.
func (f *tlsRequired) configure(ctx context.Context, e *Env, conf *unstructured.Unstructured) error {
	if err := apply(ctx, e, conf); err != nil {
		return err
	}
	if err := deletePods(ctx, e, append([]string{f.server}, f.clients...)...); err != nil {
		return err
	}
	return awaitReady(ctx, e, f.server)
}

// Manifest looks at the clients first. Whether the server demands TLS of them is up to it.
func (f *tlsRequired) Manifest(ctx context.Context, e *Env) (string, error) {
	if symptom, err := health(ctx, e, f.clients...); symptom != "" || err != nil {
		return symptom, err
	}
	return podSymptom(ctx, e, f.server)
}

func (f *tlsRequired) Recover(ctx context.Context, e *Env) error {
	return f.configure(ctx, e, f.right)
}
