package agnhost

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// newAuditProxy returns the sub-command that prints the audit events an API server sends to it.
func (p *program) newAuditProxy() *cobra.Command {
	return command("audit-proxy", "Listens on port 8080 for incoming audit events", func(ctx context.Context) error {
		return together(ctx, p.serveHTTP(":8080", http.HandlerFunc(p.handleAudit)))
	})
}

func (p *program) handleAudit(w http.ResponseWriter, r *http.Request) {
	var list auditv1.EventList
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &list)
	}
	if version := auditv1.SchemeGroupVersion.String(); err == nil && list.APIVersion != version {
		err = fmt.Errorf("the events are of version %q, not %s", list.APIVersion, version)
	}
	if err != nil {
		p.log.Printf("failed decoding buf: %v", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	for _, event := range list.Items {
		event.TypeMeta = metav1.TypeMeta{Kind: "Event", APIVersion: list.APIVersion}
		data, err := json.Marshal(event)
		if err != nil {
			p.log.Printf("could not encode audit event: %v", err)
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(p.env.Stdout, "%s\n", data)
	}
}
