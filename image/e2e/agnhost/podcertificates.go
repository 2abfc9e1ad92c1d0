package agnhost

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	client "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/rest"
)

const (
	signerRetry     = time.Second // before a watch that ended is started again
	bundleInterval  = time.Minute // between two looks at the trust bundle
	cleanupTimeout  = 10 * time.Second
	certificateLife = 24 * time.Hour
	refreshBefore   = 30 * time.Minute
	clockSkew       = 2 * time.Minute // how far back a certificate is valid
	spiffePathKey   = "spiffe/path-overriding"
)

// certificateSigner signs pods' certificate requests with an authority made for this run, and
// publishes that authority as a ClusterTrustBundle.
type certificateSigner struct {
	*program
	signer, domain string
	ca             *authority
	api            client.CertificatesV1Interface
}

func (p *program) newPodCertificateSigner() *cobra.Command {
	s := &certificateSigner{program: p}
	var kubeconfig string
	c := command("podcertificatesigner", "Sign PodCertificateRequests addressed to a given signer", func(ctx context.Context) error {
		if kubeconfig != "" {
			return errors.New("--kubeconfig is not supported: the credentials of the pod's service account are used")
		}
		config, err := inClusterConfig(p.env)
		if err != nil {
			return fmt.Errorf("while building client config: %w", err)
		}
		httpClient, err := rest.HTTPClientFor(config)
		if err != nil {
			return fmt.Errorf("while creating kubernetes client: %w", err)
		}
		defer closeIdle(httpClient)
		if s.api, err = client.NewForConfigAndClient(config, httpClient); err != nil {
			return fmt.Errorf("while creating kubernetes client: %w", err)
		}
		if s.ca, err = newAuthority(time.Now()); err != nil {
			return fmt.Errorf("while generating CA hierarchy: %w", err)
		}
		stop := p.onSignal(func(context.Context, syscall.Signal) error { return nil }, syscall.SIGINT, syscall.SIGTERM)
		err = together(ctx, stop, s.publish, s.watch)
		if ctx.Err() == nil { // Nobody who was killed cleans up.
			s.withdraw(ctx)
		}
		return err
	})
	c.Flags().StringVar(&kubeconfig, "kubeconfig", "", "Path to kubeconfig file to use for connection.  If omitted, in-cluster config will be used.")
	c.Flags().StringVar(&s.signer, "signer-name", "", "The signer name to sign certificates for")
	c.Flags().StringVar(&s.domain, "cluster-dns-domain", "", "The cluster DNS domain to sign certificates for")
	return c
}

func (s *certificateSigner) bundleName() string {
	return strings.Replace(s.signer, "/", ":", 1) + ":primary-bundle"
}

// publish keeps the trust bundle as it should be.
func (s *certificateSigner) publish(ctx context.Context) error {
	for {
		if err := s.ensureBundle(ctx); err != nil && ctx.Err() == nil {
			s.klog.errorf("Failed to publish ClusterTrustBundle %s: %v", s.bundleName(), err)
		}
		if err := sleep(ctx, bundleInterval); err != nil {
			return err
		}
	}
}

func (s *certificateSigner) ensureBundle(ctx context.Context) error {
	bundles := s.api.ClusterTrustBundles()
	want := certificatesv1.ClusterTrustBundleSpec{SignerName: s.signer, TrustBundle: encodeCertificate(s.ca.root)}
	s.klog.infof("Getting ClusterTrustBundle %s", s.bundleName())
	have, err := bundles.Get(ctx, s.bundleName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = bundles.Create(ctx, &certificatesv1.ClusterTrustBundle{
			ObjectMeta: metav1.ObjectMeta{Name: s.bundleName()}, Spec: want,
		}, metav1.CreateOptions{})
	case err == nil && have.Spec != want:
		have.Spec = want
		_, err = bundles.Update(ctx, have, metav1.UpdateOptions{})
	}
	return err
}

// withdraw takes the trust bundle back.
func (s *certificateSigner) withdraw(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	s.klog.infof("Deleting ClusterTrustBundle %s", s.bundleName())
	if err := s.api.ClusterTrustBundles().Delete(ctx, s.bundleName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		s.klog.errorf("Failed to delete ClusterTrustBundle %s: %v", s.bundleName(), err)
	}
}

// watch signs requests as they come. A watch starts with those that exist.
func (s *certificateSigner) watch(ctx context.Context) error {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.signerName", s.signer).String()}
	for {
		events, err := s.api.PodCertificateRequests(metav1.NamespaceAll).Watch(ctx, options)
		if err != nil {
			s.klog.errorf("Failed to watch PodCertificateRequests: %v", err)
		} else {
			for event := range events.ResultChan() {
				if request, ok := event.Object.(*certificatesv1.PodCertificateRequest); ok {
					s.handle(ctx, request)
				}
			}
		}
		if err := sleep(ctx, signerRetry); err != nil {
			return err
		}
	}
}

func (s *certificateSigner) handle(ctx context.Context, request *certificatesv1.PodCertificateRequest) {
	if request.Spec.SignerName != s.signer || request.Status.CertificateChain != "" || request.DeletionTimestamp != nil {
		return
	}
	s.klog.infof("\"Processing PCR\" key=\"%s/%s\"", request.Namespace, request.Name)
	err := s.sign(request, time.Now())
	if err == nil {
		_, err = s.api.PodCertificateRequests(request.Namespace).UpdateStatus(ctx, request, metav1.UpdateOptions{})
	}
	if err != nil && ctx.Err() == nil {
		s.klog.errorS(err, "Error while handling PodCertificateRequest")
	}
}

// sign fills in a request's status with a certificate of the pod's SPIFFE identity.
func (s *certificateSigner) sign(request *certificatesv1.PodCertificateRequest, now time.Time) error {
	csr, err := x509.ParseCertificateRequest(request.Spec.StubPKCS10Request)
	if err != nil {
		return fmt.Errorf("while parsing PKCS#10 request: %w", err)
	}
	life := certificateLife
	if limit := request.Spec.MaxExpirationSeconds; limit != nil {
		life = min(life, time.Duration(*limit)*time.Second)
	}
	identity := path.Join("ns", request.Namespace, "sa", request.Spec.ServiceAccountName)
	if other, ok := request.Spec.UnverifiedUserAnnotations[spiffePathKey]; ok {
		identity = other
	}
	names := []string{fmt.Sprintf("server.%s.svc", request.Namespace)}
	if s.domain != "" {
		names = append(names, names[0]+"."+s.domain)
	}
	start := now.Add(-clockSkew)
	end := start.Add(life)
	leaf, err := s.ca.issue(&x509.Certificate{
		URIs:        []*url.URL{{Scheme: "spiffe", Host: "cluster.local", Path: identity}},
		DNSNames:    names,
		NotBefore:   start,
		NotAfter:    end,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, csr.PublicKey)
	if err != nil {
		return fmt.Errorf("while signing subject cert: %w", err)
	}
	at := func(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }
	request.Status.Conditions = []metav1.Condition{{
		Type:               certificatesv1.PodCertificateRequestConditionTypeIssued,
		Status:             metav1.ConditionTrue,
		Reason:             "Reason",
		Message:            "Issued",
		LastTransitionTime: *at(now),
	}}
	request.Status.CertificateChain = encodeCertificate(leaf) + encodeCertificate(s.ca.intermediate.Raw)
	request.Status.NotBefore, request.Status.BeginRefreshAt, request.Status.NotAfter = at(start), at(end.Add(-refreshBefore)), at(end)
	return nil
}

func encodeCertificate(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
