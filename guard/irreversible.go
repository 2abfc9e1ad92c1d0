package guard

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/aiopslab/aiopslab/guard/policy"
)

// This file tells what cannot be taken back: what happens where no journal sees it, and what takes more with it than
// the object that is named. It errs on the side of caution.

// Irreversible says why a write cannot be taken back, or "".
func Irreversible(e Entry) string {
	if e.Kept != "" {
		return ""
	}
	return irreversible(&e, e.Before)
}

func irreversible(e *Entry, before []byte) string {
	switch {
	case e.DryRun:
		return ""
	case e.Verb == "connect":
		return irreversibleConnection(e)
	case e.Subresource == "finalize" || e.Subresource == "approval":
		return "what follows from " + e.Subresource + " cannot be taken back"
	case e.Subresource == "ephemeralcontainers":
		return "a container cannot be taken out of a pod again"
	case e.Verb == "delete" || e.Verb == "deletecollection":
		return takesMore[e.Resource]
	case e.Resource == "persistentvolumeclaims" && e.Subresource == "" && grows(before, e.Request):
		return "a volume that has grown cannot shrink"
	}
	return ""
}

// takesMore are the resources whose deletion takes with it what no API can bring back.
var takesMore = map[string]string{
	"namespaces":             "all that is in the namespace goes with it",
	"persistentvolumeclaims": "the data of the volume may go with it",
	"persistentvolumes":      "the data of the volume may go with it",
	"nodes":                  "the pods of the node go with it",
}

func irreversibleConnection(e *Entry) string {
	switch e.Subresource {
	case "exec":
		if policy.ReadOnly(e.Command) {
			return ""
		}
		return "what a command does in a container cannot be taken back, and this one may do more than read"
	case "attach":
		return "what is sent to a program in a container cannot be taken back"
	case "portforward":
		return "what goes through a forwarded port is not seen, and cannot be taken back"
	}
	return "what a request through the API server's proxy does cannot be taken back"
}

// grows reports whether a request asks for another size of a volume.
func grows(before, request []byte) bool {
	size := func(doc []byte) (q resource.Quantity, ok bool) {
		var c struct {
			Spec struct {
				Resources struct{ Requests map[string]string }
			}
		}
		if json.Unmarshal(doc, &c) != nil {
			return q, len(doc) > 0 // A patch of another form may.
		}
		s, ok := c.Spec.Resources.Requests["storage"]
		if !ok {
			return q, false
		}
		q, err := resource.ParseQuantity(s)
		return q, err == nil
	}
	was, _ := size(before)
	asked, ok := size(request)
	return ok && asked.Cmp(was) != 0
}
