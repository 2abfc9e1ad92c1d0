package adopt

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/aiopslab/aiopslab/internal/strict"
	"github.com/aiopslab/aiopslab/workload"
)

// system is what the objects make up.
type system struct {
	title, description string
	namespace          string
	label              string
	objects            []object
	workloads          []*part
	services           []*v1.Service
	entry              *v1.Service
	port               int // of the entry
	mix                *workload.Mix
	mixText            []byte
	notes              []string
}

// part is a workload, and what is known of it.
type part struct {
	Name     string
	set      string // Deployment, StatefulSet or DaemonSet
	template v1.PodTemplateSpec
	replicas *int32
	claims   bool // whether its pods keep volumes
	byHand   bool // whether its pods stay as they are until somebody deletes them
	object   object
	kind     string // as in app.yaml
	calls    []string
	ask      *question
	port     int  // of its Service
	headless bool // that Service leads to pods by DNS alone
	reached  bool
}

func (s *system) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// system finds the workloads, what they are, and who calls whom.
func (s *source) system(o Options) (*system, error) {
	named, err := s.oneNamespace()
	if err != nil {
		return nil, err
	}
	y := &system{
		title: cmp.Or(s.title, o.Name), description: s.description, objects: s.objects,
		namespace: cmp.Or(o.Namespace, named, "test-"+o.Name),
	}
	if reserved(y.namespace) {
		if o.Namespace != "" {
			return nil, fmt.Errorf("--namespace %s is the cluster's; take one of the application's own, such as "+
				"test-%s", o.Namespace, o.Name)
		}
		y.namespace = "test-" + o.Name
	}
	if named != "" && named != y.namespace {
		y.note("the namespace %s becomes %s: addresses with the old one in them, as SERVICE.%s, lead nowhere", named,
			y.namespace, named)
	}
	if err := y.sort(); err != nil {
		return nil, err
	}
	if err := y.findEntry(o.Entry); err != nil {
		return nil, err
	}
	if err := y.readMix(o.Mix); err != nil {
		return nil, err
	}
	y.findCalls()
	y.addLinks(o.Links)
	y.reach()
	y.mark()
	for _, w := range y.workloads {
		y.findQuestion(w)
	}
	return y, nil
}

// reserved reports whether a namespace is somebody else's.
func reserved(namespace string) bool {
	return namespace == "default" || namespace == "observe" || strings.HasPrefix(namespace, "kube-")
}

// sort finds workloads and Services among the objects.
func (y *system) sort() error {
	for _, u := range y.objects {
		switch kind := u.GetKind(); kind {
		case "Deployment", "StatefulSet", "DaemonSet":
			w, err := partOf(u)
			if err != nil {
				return err
			}
			y.workloads = append(y.workloads, w)
		case "Service":
			svc := &v1.Service{}
			if err := typed(u, svc); err != nil {
				return err
			}
			y.services = append(y.services, svc)
		case "ReplicaSet", "Pod", "Job", "CronJob":
			y.note("%s %s is deployed, and gets no problems: the faults of the lab go to Deployments, StatefulSets "+
				"and DaemonSets", kind, u.GetName())
		}
	}
	var serving []*part
	for _, w := range y.workloads {
		if w.set == "DaemonSet" && !slices.ContainsFunc(y.services, func(s *v1.Service) bool {
			return slices.Contains(y.behind(s), w)
		}) {
			y.note("DaemonSet %s is deployed, and gets no problems: no Service leads to it", w.Name)
			continue
		}
		serving = append(serving, w)
	}
	y.workloads = serving
	if len(y.workloads) == 0 {
		return fmt.Errorf("there is no Deployment or StatefulSet among the %d objects: the faults of the lab go to "+
			"those", len(y.objects))
	}
	names := map[string]string{}
	for _, w := range y.workloads {
		if other := names[w.Name]; other != "" {
			return fmt.Errorf("%s: there are a %s and a %s %s: they cannot be told apart; give one another name",
				w.object.where, other, w.set, w.Name)
		}
		names[w.Name] = w.set
	}
	return nil
}

// partOf reads a workload.
func partOf(u object) (w *part, err error) {
	w = &part{Name: u.GetName(), set: u.GetKind(), object: u}
	switch w.set {
	case "StatefulSet":
		s := &appsv1.StatefulSet{}
		err = typed(u, s)
		w.template, w.replicas, w.claims = s.Spec.Template, s.Spec.Replicas, len(s.Spec.VolumeClaimTemplates) > 0
		w.byHand = s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	case "DaemonSet":
		d := &appsv1.DaemonSet{}
		err = typed(u, d)
		w.template, w.byHand = d.Spec.Template, d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	default:
		d := &appsv1.Deployment{}
		err = typed(u, d)
		w.template, w.replicas = d.Spec.Template, d.Spec.Replicas
	}
	if err != nil {
		return nil, err
	}
	if len(w.template.Spec.Containers) == 0 {
		return nil, fmt.Errorf("%s: %s %s has no containers", u.where, w.set, w.Name)
	}
	for _, v := range w.template.Spec.Volumes {
		w.claims = w.claims || v.PersistentVolumeClaim != nil
	}
	w.kind = kindOf(w.template)
	return w, nil
}

// typed converts an object.
func typed(u object, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return fmt.Errorf("%s: %s %s: %w", u.where, u.GetKind(), u.GetName(), err)
	}
	return nil
}

// stores are words in the names of images by which servers are known that the lab can ask, and infrastructure those of
// programs that are there for operators.
var (
	stores = map[string]string{
		"mongo": "mongodb", "mongodb": "mongodb", "redis": "redis", "valkey": "redis", "memcached": "memcached",
	}
	infrastructure = []string{
		"prometheus", "alertmanager", "grafana", "jaeger", "zipkin", "tempo", "loki", "otel-collector",
		"opentelemetry-collector", "otelcol", "consul", "etcd", "fluentd", "fluent-bit",
	}
)

// kindOf is what a workload is, by the image of its first container.
func kindOf(t v1.PodTemplateSpec) string {
	image := t.Spec.Containers[0].Image
	image, _, _ = strings.Cut(image, "@")
	image = image[strings.LastIndex(image, "/")+1:]
	image, _, _ = strings.Cut(image, ":")
	if kind, ok := stores[image]; ok {
		return kind
	}
	if slices.ContainsFunc(infrastructure, func(s string) bool { return strings.HasPrefix(image, s) }) {
		return "infrastructure"
	}
	return "service"
}

// service returns a Service by name, or nil.
func (y *system) service(name string) *v1.Service {
	for _, s := range y.services {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// behind are the workloads that a Service leads to.
func (y *system) behind(s *v1.Service) (list []*part) {
	if len(s.Spec.Selector) == 0 {
		return nil
	}
	selector := labels.SelectorFromSet(s.Spec.Selector)
	for _, w := range y.workloads {
		if selector.Matches(labels.Set(w.template.Labels)) {
			list = append(list, w)
		}
	}
	return list
}

// findEntry finds what requests of users go to.
func (y *system) findEntry(entry string) error {
	name, port, given := strings.Cut(entry, ":")
	var names []string
	for _, s := range y.services {
		names = append(names, s.Name)
	}
	if y.entry = y.service(name); y.entry == nil {
		return fmt.Errorf("--entry %s: %s", entry, strict.Unknown("Service", name, names))
	}
	var ports []string
	for _, p := range y.entry.Spec.Ports {
		number := strconv.Itoa(int(p.Port))
		ports = append(ports, number)
		if port != "" && (port == number || port == p.Name) {
			y.port = int(p.Port)
		}
	}
	switch {
	case !given || port == "":
		return fmt.Errorf("--entry %s: say which port: the Service has %s", entry,
			cmp.Or(strings.Join(ports, ", "), "none"))
	case y.port == 0:
		return fmt.Errorf("--entry %s: the Service %s has no port %s; it has %s", entry, name, port,
			cmp.Or(strings.Join(ports, ", "), "none"))
	case len(y.behind(y.entry)) == 0:
		return fmt.Errorf("--entry %s: the Service %s selects no pods of a Deployment, StatefulSet or "+
			"DaemonSet", entry, name)
	}
	return nil
}

// readMix reads what users do.
func (y *system) readMix(file string) (err error) {
	if y.mixText, err = os.ReadFile(file); err != nil {
		return fmt.Errorf("--mix: %w", err)
	}
	y.mix, err = workload.ParseMix(file, y.mixText)
	return err
}

// labelKeys are what the label is called that tells workloads apart, the usual first.
var labelKeys = []string{
	"app", "app.kubernetes.io/name", "app.kubernetes.io/component", "app.kubernetes.io/instance", "io.kompose.service",
	"service", "name", "k8s-app", "component",
}

// mark finds the label whose value is each workload's name, or adds one to the pods.
func (y *system) mark() {
	for _, key := range labelKeys {
		if !slices.ContainsFunc(y.workloads, func(w *part) bool { return w.template.Labels[key] != w.Name }) {
			y.label = key
			return
		}
	}
	for _, key := range append([]string{"app"}, "workload", "workload-name") {
		if slices.ContainsFunc(y.workloads, func(w *part) bool { return w.template.Labels[key] != "" }) {
			continue
		}
		y.label = key
		for _, w := range y.workloads {
			set(w.object.Object, w.Name, "spec", "template", "metadata", "labels", key)
		}
		y.note("pods get the label %s with the name of their Deployment, StatefulSet or DaemonSet: they have none "+
			"that tells it", key)
		return
	}
}

// set sets a text in an object.
func set(m map[string]any, value string, path ...string) {
	for _, step := range path[:len(path)-1] {
		next, ok := m[step].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[step] = next
		}
		m = next
	}
	m[path[len(path)-1]] = value
}
