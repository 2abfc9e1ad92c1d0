package cloud_test

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/cloud"
)

// A cloud is used by the Kubernetes API and by a way to dial into its network, whichever it is.
func ExampleCloud() {
	var c cloud.Cloud // such as embedded.Start returns
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	pods, err := client.CoreV1().Pods("shop").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(pods.Items), "pods")
	inside := http.Client{Transport: &http.Transport{DialContext: c.Dial}}
	resp, err := inside.Get("http://frontend.shop.svc.cluster.local:80")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
}

// A disturbance is checked before it has any effect, and all that is wrong with it is said at once.
func ExampleDisturbance_Validate() {
	d := cloud.Disturbance{Network: &cloud.NetworkChaos{Loss: 1.5}}
	fmt.Println(d.Validate())
	// Output:
	// disturbance: selector: set at least one of namespace, labels, pod, service and node; network.loss: 1.5 is not a number from 0 to 1
}
