package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/term"
)

// Where an app of a federation has its task, and what makes it one that trains.
const (
	taskDir  = "/app"
	taskFile = "task.json"
	training = `"local-epochs"`
)

type modelMisconfigParams struct {
	Width int `yaml:"width" doc:"how many values the last layer of the model takes then"`
}

// Validate implements the check of parameters.
func (p modelMisconfigParams) Validate() error {
	if p.Width < 1 {
		return errors.New(`"width" must be positive`)
	}
	return nil
}

func modelMisconfig() *Kind {
	return Define(Kind{
		Name:  "model_misconfig",
		Title: "A party of a federation trains a model of another shape",
		Description: `The last layer of the model in a client app's task is given another width. What the server sends does not
fit it: the app turns every message down, and says so in its log. Runs go on with the other parties alone,
and the model that comes of them misreads what only this party could have taught it. An operator sets the
width right.`,
		Cause:   Cause{term.Application, term.Misconfiguration},
		Targets: trainers,
	}, modelMisconfigParams{Width: 80}, func(t Target, p modelMisconfigParams) (Fault, error) {
		o, err := read(t.App)
		if err != nil {
			return nil, err
		}
		right, err := o.object(t.App, "ConfigMap", o.mounted(t.Service, taskDir))
		if err != nil {
			return nil, err
		}
		text, _, err := unstructured.NestedString(right.Object, "data", taskFile)
		if err != nil {
			return nil, err
		}
		before, width, after := lastWidth(text)
		if width == strconv.Itoa(p.Width) {
			return nil, fmt.Errorf("model_misconfig: parameter \"width\": the last layer of %s takes %d values anyway",
				t.Service, p.Width)
		}
		f := &misfit{service: t.Service, right: right, wrong: right.DeepCopy()}
		text = before + strconv.Itoa(p.Width) + after
		return f, unstructured.SetNestedField(f.wrong.Object, text, "data", taskFile)
	}, func(t Target, p modelMisconfigParams) []string {
		o, _ := read(t.App)
		cm := o.mounted(t.Service, taskDir)
		_, width, _ := lastWidth(o.configMap(cm).Data[taskFile])
		return append([]string{
			fmt.Sprintf(`kubectl get configmap %s -o yaml | sed -e 's/"in": %d/"in": %s/' | kubectl replace -f -`, cm,
				p.Width, width),
		}, restart(t, []string{t.Service})...)
	})
}

// trainers are an application's services that train a model.
func trainers(a *app.App) []string {
	o, err := read(a)
	if err != nil {
		return nil
	}
	return services(a, func(s app.Service) bool {
		cm := o.mounted(s.Name, taskDir)
		if cm == "" {
			return false
		}
		text := o.configMap(cm).Data[taskFile]
		_, width, _ := lastWidth(text)
		return width != "" && strings.Contains(text, training)
	})
}

var widthOf = regexp.MustCompile(`"in": (\d+)`)

// lastWidth finds how many values the last layer of a task takes.
func lastWidth(task string) (before, width, after string) {
	all := widthOf.FindAllStringSubmatchIndex(task, -1)
	if len(all) == 0 {
		return task, "", ""
	}
	at := all[len(all)-1]
	return task[:at[2]], task[at[2]:at[3]], task[at[3]:]
}

// misfit is an app whose model does not fit the others'.
type misfit struct {
	service      string
	right, wrong *unstructured.Unstructured
}

// Inject waits until the app itself says that it cannot: it is not there for a moment, and then well until it is asked.
func (f *misfit) Inject(ctx context.Context, e *Env) error {
	if err := f.configure(ctx, e, f.wrong); err != nil {
		return err
	}
	return poll(ctx, f.service+" to turn down what it is asked", func(ctx context.Context) (bool, error) {
		err := ask(ctx, e, f.service, askTimeout)
		var absent *net.OpError
		return err != nil && !errors.As(err, &absent), nil
	})
}

// configure changes the app's task, and restarts the app.
func (f *misfit) configure(ctx context.Context, e *Env, task *unstructured.Unstructured) error {
	if err := apply(ctx, e, task); err != nil {
		return err
	}
	if err := deletePods(ctx, e, f.service); err != nil {
		return err
	}
	return awaitReady(ctx, e, f.service)
}

// Manifest asks the app whether it can do what it is asked. A restart alone is no symptom.
func (f *misfit) Manifest(ctx context.Context, e *Env) (string, error) {
	if err := ask(ctx, e, f.service, askTimeout); err != nil {
		return fmt.Sprintf("%s does not answer as it should: %v", f.service, err), ctx.Err()
	}
	return "", nil
}

func (f *misfit) Recover(ctx context.Context, e *Env) error { return f.configure(ctx, e, f.right) }
