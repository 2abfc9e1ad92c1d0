package embedded_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// awaitEvent returns an event about an object, as kubectl describe shows it, whose message begins
// with the given text.
func (c *cluster) awaitEvent(t *testing.T, ns, object, reason, message string) *v1.Event {
	t.Helper()
	return await(t, func() (*v1.Event, error) {
		list, err := c.client.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + object})
		if err != nil {
			return nil, err
		}
		var seen []string
		for i := range list.Items {
			e := &list.Items[i]
			if e.Reason == reason && strings.HasPrefix(e.Message, message) {
				return e, nil
			}
			seen = append(seen, e.Reason+": "+e.Message)
		}
		return nil, fmt.Errorf("no event %s %q about %s; there are\n%s", reason, message, object, strings.Join(seen, "\n"))
	})
}
