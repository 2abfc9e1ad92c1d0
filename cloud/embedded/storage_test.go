package embedded_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const store = `
apiVersion: v1
kind: Service
metadata: {name: store}
spec: {clusterIP: None, selector: {app: store}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  serviceName: store
  replicas: %d
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: store
        image: nginx:1.29
        ports: [{containerPort: 80}]
        readinessProbe: {tcpSocket: {port: 80}}
        volumeMounts: [{name: data, mountPath: /usr/share/nginx/html}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

// What a pod of a StatefulSet has written is there for its successor, which has its name.
func TestStatefulSetKeepsData(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, fmt.Sprintf(store, 2))
	pods := c.readyPods(t, ns, "app=store", 2)
	if pods[0].Name != "store-0" || pods[1].Name != "store-1" || pods[1].CreationTimestamp.Before(pods[0].Status.StartTime) {
		t.Errorf("pods are %s and %s", pods[0].Name, pods[1].Name)
	}
	for _, p := range pods {
		c.exec(t, ns, p.Name, "sh", "-c", "echo data of $HOSTNAME > /usr/share/nginx/html/index.html; echo layer > /tmp/file")
	}
	old := pods[1]
	if err := c.client.CoreV1().Pods(ns).Delete(t.Context(), "store-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	reborn := c.awaitPod(t, ns, "store-1", "a new ready pod", func(p *v1.Pod) bool { return p.UID != old.UID && isReady(p) })
	if reborn.Spec.NodeName != old.Spec.NodeName {
		t.Errorf("the new pod is on %s, its volume on %s", reborn.Spec.NodeName, old.Spec.NodeName)
	}
	// Its name leads to its new address, and the data is what it was.
	url := fmt.Sprintf("http://store-1.store.%s.svc.cluster.local/", ns)
	if got := c.awaitFetch(t, url); got != "data of store-1\n" {
		t.Errorf("after the pod was deleted its page is %q", got)
	}
	// What was not on the volume went with the container.
	if out, err := c.tryExec(t.Context(), ns, "store-1", "cat", "/tmp/file"); err == nil {
		t.Errorf("a file of the old container is in the new one: %q", out)
	}

	// A scale-down keeps the claim, and a scale-up finds it.
	c.apply(t, ns, fmt.Sprintf(store, 1))
	c.readyPods(t, ns, "app=store", 1)
	c.apply(t, ns, fmt.Sprintf(store, 2))
	c.readyPods(t, ns, "app=store", 2)
	if got := c.awaitFetch(t, url); got != "data of store-1\n" {
		t.Errorf("after the set was scaled its page is %q", got)
	}
}

// The default storage class makes a volume for a claim when somebody uses it, and takes it back.
func TestVolumeProvisioning(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}")
	claims := c.client.CoreV1().PersistentVolumeClaims(ns)
	c.awaitEvent(t, ns, "data", "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
	c.apply(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: registry.k8s.io/pause:3.10, volumeMounts: [{name: data, mountPath: /data}]}
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`)
	pod := c.awaitPod(t, ns, "user", "ready", isReady)
	claim, err := claims.Get(t.Context(), "data", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if claim.Status.Phase != v1.ClaimBound || *claim.Spec.StorageClassName != "standard" {
		t.Errorf("the claim is %s, of class %s", claim.Status.Phase, *claim.Spec.StorageClassName)
	}
	volumes := c.client.CoreV1().PersistentVolumes()
	volume, err := volumes.Get(t.Context(), claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]; got != pod.Spec.NodeName {
		t.Errorf("the volume is on %s, the pod on %s", got, pod.Spec.NodeName)
	}
	// A claim in use outlives its deletion.
	if err := claims.Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if claim, err = claims.Get(t.Context(), "data", metav1.GetOptions{}); err != nil || claim.DeletionTimestamp == nil {
		t.Errorf("the claim in use: %v, deleted at %v", err, claim.DeletionTimestamp)
	}
	if err := c.client.CoreV1().Pods(ns).Delete(t.Context(), "user", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, "the claim", func() (*v1.PersistentVolumeClaim, error) { return claims.Get(t.Context(), "data", metav1.GetOptions{}) })
	awaitGone(t, "the volume", func() (*v1.PersistentVolume, error) {
		return volumes.Get(t.Context(), volume.Name, metav1.GetOptions{})
	})
}
