package node

import (
	"errors"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/images"
)

// pullSecrets are the secrets that a pod names for pulling images, and the names of those that do not exist.
func (w *worker) pullSecrets(pod *v1.Pod) (secrets []v1.Secret, missing []string) {
	for _, ref := range pod.Spec.ImagePullSecrets {
		if ref.Name == "" { // The API lets it pass.
			continue
		}
		if s, err := w.kubelet.watches.secrets.Secrets(pod.Namespace).Get(ref.Name); err == nil {
			secrets = append(secrets, *s)
		} else {
			missing = append(missing, ref.Name)
		}
	}
	return secrets, missing
}

// noteSecrets tells of secrets that do not exist, if an image could not be pulled.
func (w *worker) noteSecrets(pod *v1.Pod, missing []string, result kubecontainer.PodSyncResult) {
	failed := slices.ContainsFunc(result.SyncResults, func(r *kubecontainer.SyncResult) bool {
		return errors.Is(r.Error, images.ErrImagePull)
	})
	if len(missing) > 0 && failed {
		w.kubelet.recorder.Eventf(pod, v1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
			"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.",
			strings.Join(missing, ", "))
	}
}
