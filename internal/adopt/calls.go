package adopt

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/aiopslab/aiopslab/observe"
)

// findCalls finds who calls whom by the addresses of Services in what workloads are started with.
func (y *system) findCalls() {
	texts := y.texts()
	for _, s := range y.services {
		is := y.addressOf(s)
		for _, w := range y.workloads {
			if slices.ContainsFunc(texts[w.Name], is) {
				for _, callee := range y.behind(s) {
					w.call(callee.Name)
				}
			}
		}
	}
}

// call notes that a workload calls another.
func (w *part) call(name string) {
	if name != w.Name && !slices.Contains(w.calls, name) {
		w.calls = append(w.calls, name)
		slices.Sort(w.calls)
	}
}

// texts are what each workload is started with: variables as NAME=VALUE, arguments, files of ConfigMaps and Secrets.
func (y *system) texts() map[string][]string {
	config, secrets := map[string]map[string]string{}, map[string]map[string]string{}
	for _, u := range y.objects {
		switch u.GetKind() {
		case "ConfigMap":
			config[u.GetName()] = stringsOf(u.Object["data"])
		case "Secret":
			values := stringsOf(u.Object["stringData"])
			for k, v := range stringsOf(u.Object["data"]) {
				if b, err := base64.StdEncoding.DecodeString(v); err == nil {
					values[k] = string(b)
				}
			}
			secrets[u.GetName()] = values
		}
	}
	texts := map[string][]string{}
	for _, w := range y.workloads {
		t := &collector{config: config, secrets: secrets}
		spec := w.template.Spec
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			t.container(c)
		}
		for _, v := range spec.Volumes {
			t.volume(v)
		}
		texts[w.Name] = t.list
	}
	return texts
}

func stringsOf(v any) map[string]string {
	values := map[string]string{}
	m, _ := v.(map[string]any)
	for k, x := range m {
		values[k] = fmt.Sprint(x)
	}
	return values
}

// collector collects the texts of a workload.
type collector struct {
	config, secrets map[string]map[string]string
	list            []string
}

func (t *collector) all(values map[string]string) {
	for k, v := range values {
		t.list = append(t.list, k+"="+v)
	}
}

func (t *collector) container(c v1.Container) {
	t.list = append(t.list, slices.Concat(c.Command, c.Args)...)
	for _, e := range c.Env {
		value := e.Value
		if from := e.ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
			value = t.config[from.ConfigMapKeyRef.Name][from.ConfigMapKeyRef.Key]
		} else if from != nil && from.SecretKeyRef != nil {
			value = t.secrets[from.SecretKeyRef.Name][from.SecretKeyRef.Key]
		}
		t.list = append(t.list, e.Name+"="+value)
	}
	for _, e := range c.EnvFrom {
		if e.ConfigMapRef != nil {
			t.all(t.config[e.ConfigMapRef.Name])
		}
		if e.SecretRef != nil {
			t.all(t.secrets[e.SecretRef.Name])
		}
	}
}

func (t *collector) volume(v v1.Volume) {
	if v.ConfigMap != nil {
		t.all(t.config[v.ConfigMap.Name])
	}
	if v.Secret != nil {
		t.all(t.secrets[v.Secret.SecretName])
	}
	if v.Projected == nil {
		return
	}
	for _, s := range v.Projected.Sources {
		if s.ConfigMap != nil {
			t.all(t.config[s.ConfigMap.Name])
		}
		if s.Secret != nil {
			t.all(t.secrets[s.Secret.Name])
		}
	}
}

// place are words at the end of a name whose value is an address.
const place = `(?:host|hostname|addr|address|servers?|url|uri|endpoint|upstream|backend|service|svc|peer|target|dsn)`

// addressOf returns a function that reports whether a text has the address of a Service. A name alone is often just
// a word, so something must say that it is an address: what stands before, a port behind, a domain, or the name of the
// variable.
func (y *system) addressOf(s *v1.Service) func(string) bool {
	name := regexp.QuoteMeta(s.Name)
	var ports []string
	for _, p := range s.Spec.Ports {
		ports = append(ports, fmt.Sprint(p.Port))
	}
	forms := []string{
		`(?://|@)` + name + `(?:[^A-Za-z0-9_-]|$)`,
		`(?:^|[^A-Za-z0-9._-])` + name + `\.(?:` + regexp.QuoteMeta(y.namespace) +
			`|svc|[a-z0-9-]+\.svc)(?:[^A-Za-z0-9_-]|$)`,
		`(?im)` + place + `["']?[ \t]*[:=]?[ \t]*["']?` + name + `["']?[ \t]*[;,}]?[ \t]*\r?$`,
		`\$\(` + regexp.QuoteMeta(strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))) + `_SERVICE_(?:HOST|PORT)`,
	}
	if len(ports) > 0 {
		forms = append(forms, `(?:^|[^A-Za-z0-9._-])`+name+`:(?:`+strings.Join(ports, "|")+`)(?:[^0-9]|$)`)
	}
	var list []*regexp.Regexp
	for _, f := range forms {
		list = append(list, regexp.MustCompile(f))
	}
	return func(text string) bool {
		return slices.ContainsFunc(list, func(re *regexp.Regexp) bool { return re.MatchString(text) })
	}
}

// addLinks adds who calls whom in traces.
func (y *system) addLinks(links []observe.Link) {
	var strangers []string
	find := func(name string) *part {
		for _, w := range y.workloads {
			if w.Name == name || strings.HasSuffix(w.Name, "-"+name) {
				return w
			}
		}
		if s := y.service(name); s != nil {
			if list := y.behind(s); len(list) > 0 {
				return list[0]
			}
		}
		if !slices.Contains(strangers, name) {
			strangers = append(strangers, name)
		}
		return nil
	}
	for _, l := range links {
		parent, child := find(l.Parent), find(l.Child)
		if parent != nil && child != nil {
			parent.call(child.Name)
		}
	}
	if len(strangers) > 0 {
		slices.Sort(strangers)
		y.note("there is no workload of the same name for those of traces or --calls: %s",
			strings.Join(strangers, ", "))
	}
}

// reach finds what requests of users reach.
func (y *system) reach() {
	next := y.behind(y.entry)
	for len(next) > 0 {
		w := next[0]
		next = next[1:]
		if w.reached {
			continue
		}
		w.reached = true
		for _, callee := range y.workloads {
			if slices.Contains(w.calls, callee.Name) {
				next = append(next, callee)
			}
		}
	}
}
