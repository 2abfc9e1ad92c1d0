package noise

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/world"
)

// certificate is the certificate of the application that is renewed, or nil.
func (l *Life) certificate(ctx context.Context) *v1.Secret {
	list, err := l.Env.Client.CoreV1().Secrets(l.Env.App.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: world.CertificateLabel + "=true",
	})
	if err != nil || len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// renew renews the certificate. One that somebody else has written since it was found or renewed is left alone.
func (l *Life) renew(ctx context.Context, r *rand.Rand) {
	// What is begun is finished.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), calmTimeout)
	defer cancel()
	s := l.certificate(ctx)
	if s == nil || s.ResourceVersion != l.certified {
		return
	}
	data, err := world.Certificate(s.Namespace, s.Data, r, time.Now().Truncate(time.Second))
	if err != nil {
		return
	}
	revision, _ := strconv.Atoi(s.Annotations[world.CertificateRevision])
	s.Data, s.Annotations[world.CertificateRevision] = data, strconv.Itoa(revision+1)
	// With its resource version: whoever has written it since comes first.
	s, err = l.Env.Client.CoreV1().Secrets(s.Namespace).Update(ctx, s,
		metav1.UpdateOptions{FieldManager: world.CertificateWriter})
	if err == nil {
		l.certified = s.ResourceVersion
		l.note(record.Change{What: "certificate", Service: s.Name})
	}
}
