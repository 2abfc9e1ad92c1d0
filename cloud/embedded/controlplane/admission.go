package controlplane

import (
	"context"
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/aiopslab/aiopslab/cloud/embedded/loopback"
)

// hostName is what the control plane calls the machine it runs on. The real name is nobody's
// business in the cluster.
const hostName = "control-plane"

// configurable are the admission plug-ins that do what objects in the cluster tell them to.
var configurable = []string{
	mutatingwebhook.PluginName, validatingwebhook.PluginName, mutatingpolicy.PluginName, validatingpolicy.PluginName,
}

// decorateAdmission keeps webhooks and policies away from trusted requests: whoever can write to the
// cluster can register them, and would see, change or refuse what the lab does. The first plug-in
// also sees to names.
func decorateAdmission(plugin admission.Interface, name string) admission.Interface {
	if !slices.Contains(configurable, name) {
		return plugin
	}
	p := passTrusted{Interface: plugin}
	if name == mutatingwebhook.PluginName {
		p.machine, _ = os.Hostname()
	}
	return p
}

// passTrusted is an admission plug-in that is not asked about trusted requests.
type passTrusted struct {
	admission.Interface
	machine string // name of the machine, to be replaced; empty for no
}

// Admit implements admission.MutationInterface.
func (p passTrusted) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.machine != "" {
		renameMachine(a.GetObject(), p.machine)
	}
	if m, ok := p.Interface.(admission.MutationInterface); ok && !loopback.Trusted(ctx) {
		return m.Admit(ctx, a, o)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (p passTrusted) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if v, ok := p.Interface.(admission.ValidationInterface); ok && !loopback.Trusted(ctx) {
		return v.Validate(ctx, a, o)
	}
	return nil
}

// renameMachine replaces the machine's name where the control plane writes it: in the scheduler's
// events and in the API server's lease.
func renameMachine(obj runtime.Object, machine string) {
	switch o := obj.(type) {
	case *core.Event:
		if component, ok := strings.CutSuffix(o.ReportingInstance, "-"+machine); ok {
			o.ReportingInstance = component + "-" + hostName
		}
		if o.Source.Host == machine {
			o.Source.Host = hostName
		}
	case *coordination.Lease:
		if o.Labels[v1.LabelHostname] == machine {
			o.Labels[v1.LabelHostname] = hostName
		}
	}
}
