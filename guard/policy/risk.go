package policy

import "slices"

// Risk is how much can go wrong by a change.
type Risk string

const (
	// None is of what changes nothing: a dry run, or a command in a container that only reads.
	None Risk = "none"
	// Low is of a change to one object of an application that can be taken back.
	Low Risk = "low"
	// Medium is of what stops pods for a while, or is about more than one application.
	Medium Risk = "medium"
	// High is of what takes something away that does not come again by itself, or gives rights.
	High Risk = "high"
	// Irreversible is of what cannot be taken back.
	Irreversible Risk = "irreversible"
)

func riskNames() []string {
	return []string{string(None), string(Low), string(Medium), string(High), string(Irreversible)}
}

// withData are the resources whose deletion takes what no API can bring back.
var withData = []string{"namespaces", "persistentvolumeclaims", "persistentvolumes", "nodes"}

// comesAgain are the resources that controllers make again.
var comesAgain = []string{"pods", "replicasets", "endpoints", "endpointslices", "events", "leases"}

// rights are the resources that say who may do what, or what happens to every object.
var rights = []string{
	"roles", "rolebindings", "clusterroles", "clusterrolebindings", "serviceaccounts", "certificatesigningrequests",
	"customresourcedefinitions", "apiservices", "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
	"validatingadmissionpolicies", "validatingadmissionpolicybindings",
}

// Classify says how much can go wrong by a change, and why.
func Classify(c Change) (Risk, string) {
	deletes := c.Verb == "delete" || c.Verb == "deletecollection"
	switch {
	case c.DryRun:
		return None, "a dry run changes nothing"
	case c.Verb == "connect":
		return classifyConnection(c)
	case deletes && slices.Contains(withData, c.Resource):
		return Irreversible, "what goes with it cannot be brought back"
	case c.Subresource == "finalize", c.Subresource == "approval", c.Subresource == "ephemeralcontainers":
		return Irreversible, "what follows from " + c.Subresource + " cannot be taken back"
	case slices.Contains(rights, c.Resource) || c.Subresource == "token":
		return High, "it is about who may do what, or about every object"
	case c.Verb == "deletecollection":
		return High, "it deletes many objects at once"
	case deletes && slices.Contains(comesAgain, c.Resource), c.Subresource == "eviction":
		return Medium, "it stops something that is made again"
	case deletes:
		return High, "what is deleted does not come again by itself"
	case c.Namespace == "":
		return Medium, "it is about the whole cluster"
	case c.Resource == "pods" && c.Verb == "create":
		return Medium, "it starts a program"
	}
	return Low, "it changes one object, and can be taken back"
}

func classifyConnection(c Change) (Risk, string) {
	switch {
	case c.Subresource != "exec":
		return Irreversible, "what is sent is not seen, and cannot be taken back"
	case ReadOnly(c.Command):
		return None, "the command only reads"
	}
	return Irreversible, "what a command does in a container cannot be taken back, and this one may do more than read"
}
