package embedded_test

import (
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/kit"
)

// A cluster is started in this process, with the images that its containers can run. A snapshot of it
// can be kept, gone back to, and started from.
func ExampleStart() {
	ctx := context.Background()
	c, err := embedded.Start(ctx, embedded.Options{
		Nodes:  1,
		Images: kit.NewRegistry(kit.Image{Names: []string{"example/idle"}, Programs: map[string]kit.Program{"/idle": idle}}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	client := kubernetes.NewForConfigOrDie(c.RESTConfig())
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(nodes.Items), "node")
	snapshot, err := c.Snapshot(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := snapshot.WriteTo(os.Stdout); err != nil { // A file, rather.
		fmt.Println(err)
	}
}

// idle is a program that waits for its end.
func idle(ctx context.Context, _ *kit.Env) error {
	<-ctx.Done()
	return nil
}
