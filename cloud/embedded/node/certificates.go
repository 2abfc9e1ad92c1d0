package node

import (
	"context"
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/kubelet/podcertificate"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
	"k8s.io/utils/ptr"
)

// startCertificates starts the manager that requests certificates for pods and renews them. It is
// called for the first pod that wants one, since most clusters never see such a pod.
func (k *kubelet) startCertificates() *podcertificate.IssuingManager {
	cfg, name := k.node.fleet.cfg, k.node.spec.Name
	own := informers.NewSharedInformerFactoryWithOptions(cfg.Client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", name).String()
		}))
	m := podcertificate.NewIssuingManager(cfg.Client, k, k.recorder,
		own.Certificates().V1().PodCertificateRequests(), k.watches.factory.Core().V1().Nodes(), types.NodeName(name),
		cfg.Clock)
	own.Start(k.ctx.Done())
	k.wg.Go(func() {
		m.Run(k.ctx)
		own.Shutdown()
	})
	return m
}

// GetPods implements podcertificate.PodManager.
func (k *kubelet) GetPods() []*v1.Pod {
	var pods []*v1.Pod
	for _, w := range k.all() {
		pods = append(pods, w.current())
	}
	return pods
}

// certificateFiles are the key and the certificate chain of a source of a projected volume, once a
// signer has issued them.
func (v *podVolumes) certificateFiles(ctx context.Context, pod *v1.Pod, volume string, source int,
	s *v1.PodCertificateProjection, mode *int32,
) (map[string]volumeutil.FileProjection, error) {
	m := v.worker.kubelet.certificates()
	m.TrackPod(ctx, pod)
	key, chain, err := m.GetPodCertificateCredentialBundle(ctx, pod.Namespace, pod.Name, string(pod.UID), volume,
		source)
	if err != nil {
		return nil, err
	}
	files := map[string]volumeutil.FileProjection{}
	for path, data := range map[string][]byte{
		s.CredentialBundlePath: slices.Concat(key, chain),
		s.KeyPath:              key,
		s.CertificateChainPath: chain,
	} {
		if path != "" {
			files[path] = credential(pod, data, mode)
		}
	}
	return files, nil
}

// trustFile holds the trust anchors of one bundle, or of all bundles of a signer that match.
func (v *podVolumes) trustFile(ctx context.Context, pod *v1.Pod, s *v1.ClusterTrustBundleProjection,
	mode *int32,
) (map[string]volumeutil.FileProjection, error) {
	trust := v.worker.kubelet.watches.trust
	optional := ptr.Deref(s.Optional, false)
	var anchors []byte
	var err error
	switch {
	case s.Name != nil:
		anchors, err = trust.GetTrustAnchorsByName(ctx, *s.Name, optional)
	case s.SignerName != nil:
		anchors, err = trust.GetTrustAnchorsBySigner(ctx, *s.SignerName, s.LabelSelector, optional)
	default:
		err = errors.New("ClusterTrustBundle projection requires either name or signerName to be set")
	}
	if err != nil {
		return nil, err
	}
	return map[string]volumeutil.FileProjection{s.Path: credential(pod, anchors, mode)}, nil
}

// forgetCertificates drops what a removed pod was issued.
func (k *kubelet) forgetCertificates(ctx context.Context, pod *v1.Pod) {
	for _, v := range pod.Spec.Volumes {
		if v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s v1.VolumeProjection) bool {
			return s.PodCertificate != nil
		}) {
			k.certificates().ForgetPod(ctx, pod)
			return
		}
	}
}
