package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/strict"
	"github.com/aiopslab/aiopslab/internal/term"
)

// Where an application has its feature flags, and who serves them.
const (
	flagServer = "flagd"
	flagMap    = "flagd-config"
	flagFile   = "demo.flagd.json"
)

type featureFlagParams struct {
	Flag    string `yaml:"flag" doc:"the flag that is switched on; by default the first that is for the target"`
	Variant string `yaml:"variant" doc:"the variant that it is switched to; by default on, or the first other one"`
}

// complete fills in what is left to the target.
func (p featureFlagParams) complete(all map[string]flagDefinition, target string) featureFlagParams {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if s, ok := signs[name]; p.Flag == "" && ok && slices.Contains(s.services(), target) {
			p.Flag = name
		}
	}
	flag := all[p.Flag]
	if flag.Variants["on"] != nil && p.Variant == "" {
		p.Variant = "on"
	}
	for _, name := range slices.Sorted(maps.Keys(flag.Variants)) {
		if p.Variant == "" && name != flag.Default {
			p.Variant = name
		}
	}
	return p
}

func featureFlag() *Kind {
	return Define(Kind{
		Name:  "feature_flag",
		Title: "A feature flag is switched on that makes a service misbehave",
		Description: `The default variant of a flag in the ConfigMap of flagd is changed, and flagd is started anew, since it
reads the ConfigMap at its start alone. The service that asks for the flag does from then on what the
flag says: it fails, is slow, uses up its processor or its memory. An operator sets the variant back and
restarts flagd.`,
		Cause:   Cause{term.Application, term.Misconfiguration},
		Targets: flaggedServices,
	}, featureFlagParams{}, bindFeatureFlag, func(t Target, p featureFlagParams) []string {
		f, err := bindFeatureFlag(t, p)
		if err != nil {
			return nil
		}
		return f.(*flagged).solution(t)
	})
}

// flaggedServices are the services that a flag of the application, of which it is known how it shows, makes misbehave.
func flaggedServices(a *app.App) (names []string) {
	o, err := read(a)
	if err != nil {
		return nil
	}
	all, err := flagsOf(o.configMap(flagMap).Data[flagFile])
	if err != nil {
		return nil
	}
	for flag := range all {
		if s, ok := signs[flag]; ok {
			names = append(names, s.services()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// flagDefinition is a flag in the file of flagd.
type flagDefinition struct {
	Variants map[string]any `json:"variants"`
	Default  string         `json:"defaultVariant"`
}

// flagsOf reads the file of flagd.
func flagsOf(text string) (map[string]flagDefinition, error) {
	var file struct {
		Flags map[string]flagDefinition `json:"flags"`
	}
	if err := json.Unmarshal([]byte(text), &file); err != nil {
		return nil, fmt.Errorf("%s: %w", flagFile, err)
	}
	return file.Flags, nil
}

// bindFeatureFlag changes the file of flagd, and nothing of it but the variant.
func bindFeatureFlag(t Target, p featureFlagParams) (Fault, error) {
	o, err := read(t.App)
	if err != nil {
		return nil, err
	}
	right, err := o.object(t.App, "ConfigMap", flagMap)
	if err != nil {
		return nil, err
	}
	server, err := o.object(t.App, "Deployment", flagServer)
	if err != nil {
		return nil, err
	}
	text := o.configMap(flagMap).Data[flagFile]
	all, err := flagsOf(text)
	if err != nil {
		return nil, err
	}
	p = p.complete(all, t.Service)
	flag, ok := all[p.Flag]
	sign, known := signs[p.Flag]
	switch {
	case !ok || !known:
		return nil, errors.New("feature_flag: " + strict.Unknown("flag", p.Flag, knownFlags(all)))
	case flag.Variants[p.Variant] == nil:
		return nil, errors.New("feature_flag: " + strict.Unknown("variant", p.Variant,
			slices.Sorted(maps.Keys(flag.Variants))))
	case p.Variant == flag.Default:
		return nil, fmt.Errorf("feature_flag: %s is %q already; want another variant", p.Flag, p.Variant)
	case !slices.Contains(sign.services(), t.Service):
		return nil, fmt.Errorf("feature_flag: %s shows in %s, not in %q", p.Flag,
			strings.Join(sign.services(), " and "), t.Service)
	}
	changed, err := setVariant(text, p.Flag, p.Variant)
	if err != nil {
		return nil, err
	}
	wrong := right.DeepCopy()
	f := &flagged{sign: sign, right: right, wrong: wrong, server: server, text: text, seen: map[string][]seen{}}
	return f, unstructured.SetNestedField(wrong.Object, changed, "data", flagFile)
}

func knownFlags(all map[string]flagDefinition) (names []string) {
	for name := range all {
		if _, ok := signs[name]; ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// setVariant changes the default variant of a flag in the text of the file.
func setVariant(text, flag, variant string) (string, error) {
	of := regexp.MustCompile(`(?s)("` + regexp.QuoteMeta(flag) + `"\s*:\s*\{.*?"defaultVariant"\s*:\s*)"[^"]*"`)
	name, err := json.Marshal(variant)
	if err != nil {
		return "", err
	}
	changed := of.ReplaceAllString(text, "${1}"+strings.ReplaceAll(string(name), "$", "$$"))
	all, err := flagsOf(changed)
	if err == nil && all[flag].Default != variant {
		err = fmt.Errorf("%s: flag %s has no defaultVariant", flagFile, flag)
	}
	return changed, err
}

// flagged is an application with a flag that is on.
type flagged struct {
	sign         *sign
	right, wrong *unstructured.Unstructured // of the ConfigMap
	server       *unstructured.Unstructured // flagd's Deployment
	text         string                     // what the file should say
	seen         map[string][]seen          // by pod, the oldest first
	shown        bool                       // it has shown
}

var (
	_ Lasting  = (*flagged)(nil)
	_ Reaching = (*flagged)(nil)
)

func (f *flagged) Inject(ctx context.Context, e *Env) error { return f.set(ctx, e, f.wrong) }

func (f *flagged) Recover(ctx context.Context, e *Env) error { return f.set(ctx, e, f.right) }

// set writes the ConfigMap and makes the pods of flagd anew. Where everything is released at the time, flagd's pods are
// replaced as the others are, and otherwise they are deleted.
func (f *flagged) set(ctx context.Context, e *Env, file *unstructured.Unstructured) error {
	before, err := podsOf(ctx, e, flagServer)
	if err != nil {
		return err
	}
	if err := apply(ctx, e, file); err != nil {
		return err
	}
	released, err := f.release(ctx, e)
	if err != nil {
		return err
	}
	return poll(ctx, "new pods of "+flagServer, func(ctx context.Context) (bool, error) {
		now, err := podsOf(ctx, e, flagServer)
		if err != nil {
			return false, err
		}
		fresh, old := false, false
		for i := range now {
			if slices.ContainsFunc(before, func(p v1.Pod) bool { return p.UID == now[i].UID }) {
				if old = true; !released {
					return false, deletePod(ctx, e, &now[i])
				}
			}
			fresh = fresh || unready(&now[i], 0) == ""
		}
		return fresh && !old, nil
	})
}

// release applies flagd's Deployment, and reports whether that replaces its pods.
func (f *flagged) release(ctx context.Context, e *Env) (bool, error) {
	deployments := e.Client.AppsV1().Deployments(f.server.GetNamespace())
	before, err := deployments.Get(ctx, flagServer, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("read Deployment %s: %w", flagServer, err)
	}
	if err := apply(ctx, e, f.server); err != nil {
		return false, err
	}
	after, err := deployments.Get(ctx, flagServer, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("read Deployment %s: %w", flagServer, err)
	}
	return !reflect.DeepEqual(before.Spec.Template, after.Spec.Template), nil
}

// Manifest asks for what the flag brings about. Once that has shown, it asks as well whether the service and flagd are
// there at all: who takes them away has not helped.
func (f *flagged) Manifest(ctx context.Context, e *Env) (string, error) {
	symptom, err := f.sign.shows(ctx, e, f)
	if symptom != "" || err != nil || !f.shown {
		f.shown = f.shown || symptom != ""
		return symptom, err
	}
	return f.lacking(ctx, e)
}

// lacking says which of the services that the flag is about is not there. Pods that a release has just made are well; a
// container that was killed may be killed again.
func (f *flagged) lacking(ctx context.Context, e *Env) (string, error) {
	for _, s := range append(f.sign.services(), flagServer) {
		symptom, err := unsettled(ctx, e, s, 0)
		if symptom == "" && err == nil && f.sign.kills {
			symptom, err = killed(ctx, e, s)
		}
		if symptom != "" || err != nil {
			return symptom, err
		}
		if err := ask(ctx, e, s, askTimeout); err != nil {
			return fmt.Sprintf("%s does not answer: %v", s, err), ctx.Err()
		}
	}
	return "", nil
}

// killed says which pod of a service had a container that was started again a moment ago.
func killed(ctx context.Context, e *Env, service string) (string, error) {
	pods, err := podsOf(ctx, e, service)
	for i := range pods {
		for _, c := range pods[i].Status.ContainerStatuses {
			if c.RestartCount > 0 && unready(&pods[i], killSettle) != "" {
				return pods[i].Name + " " + unready(&pods[i], killSettle), nil
			}
		}
	}
	return "", err
}

// Hold implements [Lasting].
func (f *flagged) Hold() (time.Duration, string) { return f.sign.hold, f.sign.why }

// Linger implements [Lasting]: pods have to settle, and what was seen to be forgotten.
func (f *flagged) Linger() time.Duration { return killSettle + usersWindow + f.sign.hold }

// Reach implements [Reaching].
func (f *flagged) Reach() Reach {
	r := Reach{Applies: []string{key(f.right), key(f.server)}, Alone: []string{flagServer}}
	if f.sign.alone {
		r.Alone = append(r.Alone, f.sign.services()...)
	}
	return r
}

// solution is what an operator types: the file as it should be, and a restart of who reads it.
func (f *flagged) solution(t Target) []string {
	patch, err := json.Marshal(map[string]any{"data": map[string]string{flagFile: f.text}})
	if err != nil {
		return nil
	}
	commands := []string{
		fmt.Sprintf("kubectl patch configmap %s --type=merge -p '%s'", flagMap,
			strings.ReplaceAll(string(patch), "'", `'\''`)),
		"kubectl rollout restart deployment/" + flagServer,
		rollout(t.App, flagServer),
	}
	if f.sign.kills {
		commands = append(commands, restart(t, f.sign.services())...)
	}
	return commands
}
