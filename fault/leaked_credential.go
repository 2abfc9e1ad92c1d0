package fault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/app"
	questions "github.com/aiopslab/aiopslab/app/ask"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/internal/term"
)

// The keys of a Secret with a login.
const (
	userKey     = "username"
	passwordKey = "password"
)

// mysqlRoot is the variable with the password of MySQL's administrator.
const mysqlRoot = "MYSQL_ROOT_PASSWORD"

func leakedCredential() *Kind {
	return Define(Kind{
		Name:  "leaked_credential",
		Title: "The password that services log in to a MySQL server with is known to others",
		Description: `The store and its clients get a password that is drawn, by the Secret that both take it from, and others
know it too: the lab logs in with it, from outside, for as long as that goes. Nobody who uses the application feels it.
An operator gives the services another login, in the store and in the Secret, restarts the clients, which read it when
they start, and takes the old one away. A store that is only restarted has the same password again.`,
		Cause: Cause{term.Application, term.Authentication},
		Targets: func(a *app.App) []string {
			o, err := read(a)
			if err != nil {
				return nil
			}
			return services(a, func(s app.Service) bool {
				c := o.containers(s.Name)
				return s.Secret != "" && len(callers(a, s.Name)) > 0 && len(c) > 0 &&
					slices.ContainsFunc(c[0].Env, func(e v1.EnvVar) bool { return e.Name == mysqlRoot })
			})
		},
	}, none{}, func(t Target, _ none) (Fault, error) {
		s, _ := t.App.Service(t.Service)
		return &leaked{store: t.Service, secret: s.Secret, clients: callers(t.App, t.Service)}, nil
	}, func(t Target, _ none) []string {
		s, _ := t.App.Service(t.Service)
		return rotation(t, s.Secret)
	})
}

// rotation are commands that give the clients of a MySQL server another login without an outage: for a while both are
// good.
func rotation(t Target, secret string) []string {
	sql := func(statement string) string {
		return fmt.Sprintf(`kubectl exec %s -- sh -c "mysql -u root -p\"\$%s\" -e \"%s\""`, ref(t.App, t.Service),
			mysqlRoot, statement)
	}
	steps := []string{
		fmt.Sprintf("old=$(kubectl get secret %s -o jsonpath='{.data.%s}' | base64 -d)", secret, userKey),
		"new=$(head -c 18 /dev/urandom | sha256sum | cut -c 1-24)",
		"user=rotated_$(echo $new | cut -c 1-6)",
		sql("CREATE USER '$user' IDENTIFIED BY '$new'"),
		fmt.Sprintf(`kubectl patch secret %s -p "{\"stringData\": {\"%s\": \"$user\", \"%s\": \"$new\"}}"`, secret,
			userKey, passwordKey),
	}
	for _, c := range callers(t.App, t.Service) {
		steps = append(steps, "kubectl rollout restart "+ref(t.App, c), rollout(t.App, c))
	}
	return []string{strings.Join(append(steps, sql("DROP USER '$old'")), " && ")}
}

// leaked is a store whose clients log in with what others know.
type leaked struct {
	store, secret string
	clients       []string

	before map[string][]byte // what the Secret had; nil before an injection
	login  questions.Login   // what has leaked
}

// Inject gives store and clients the password that leaks. The store takes it when it starts.
func (f *leaked) Inject(ctx context.Context, e *Env) error {
	s, err := e.Client.CoreV1().Secrets(e.App.Namespace).Get(ctx, f.secret, metav1.GetOptions{})
	if err != nil {
		return err
	}
	f.before = maps.Clone(s.Data)
	f.login = questions.Login{User: string(s.Data[userKey]), Password: e.draw(f.store, passwordLetters, passwordLength)}
	data := maps.Clone(s.Data)
	data[passwordKey] = []byte(f.login.Password)
	return f.give(ctx, e, data)
}

// give puts data into the Secret, and restarts the store and then its clients.
func (f *leaked) give(ctx context.Context, e *Env, data map[string][]byte) error {
	api := e.Client.CoreV1().Secrets(e.App.Namespace)
	s, err := api.Get(ctx, f.secret, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		s = &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: f.secret}, Data: data}
		_, err = api.Create(ctx, s, metav1.CreateOptions{FieldManager: manifest.FieldManager})
	case err == nil:
		s.Data = data
		_, err = api.Update(ctx, s, metav1.UpdateOptions{FieldManager: manifest.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("change Secret %s: %w", f.secret, err)
	}
	for _, name := range append([]string{f.store}, f.clients...) {
		if err := deletePods(ctx, e, name); err != nil {
			return err
		}
		if err := awaitReady(ctx, e, name); err != nil {
			return err
		}
		err := poll(ctx, name+" to answer", func(ctx context.Context) (bool, error) {
			err := Ask(ctx, e, name)
			return err == nil, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Manifest says whether the login that has leaked is still good, or what it was replaced by is not.
func (f *leaked) Manifest(ctx context.Context, e *Env) (string, error) {
	if f.before == nil {
		return "", nil
	}
	s, err := e.Client.CoreV1().Secrets(e.App.Namespace).Get(ctx, f.secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("the Secret %s is gone", f.secret), nil
	}
	if err != nil {
		return "", err
	}
	for key, value := range s.Data {
		if bytes.Contains(value, []byte(f.login.Password)) {
			return fmt.Sprintf("the Secret %s still has the leaked password, under %s", f.secret, key), nil
		}
	}
	err = Ask(questions.WithLogin(ctx, f.login), e, f.store)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return f.store + " still lets the leaked login in", nil
	case !errors.Is(err, questions.ErrRefused):
		return fmt.Sprintf("%s does not say whether it would let the leaked login in: %v", f.store, err), nil
	}
	if symptom, err := f.elsewhere(ctx, e); symptom != "" || err != nil {
		return symptom, err
	}
	if err := Ask(ctx, e, f.store); err != nil && ctx.Err() == nil {
		return fmt.Sprintf("%s does not let in what the Secret %s has: %v", f.store, f.secret, err), nil
	}
	for _, c := range f.clients {
		if err := Ask(ctx, e, c); err != nil && ctx.Err() == nil {
			return fmt.Sprintf("%s does not get on with %s: %v", c, f.store, err), nil
		}
	}
	return "", ctx.Err()
}

// elsewhere asks the pods of the store themselves: one that is no longer behind the Service still has the data.
func (f *leaked) elsewhere(ctx context.Context, e *Env) (string, error) {
	s, _ := e.App.Service(f.store)
	pods, err := podsOf(ctx, e, f.store)
	if err != nil {
		return "", err
	}
	for _, p := range pods {
		if p.Status.PodIP == "" || s.Port == 0 {
			continue
		}
		address := net.JoinHostPort(p.Status.PodIP, strconv.Itoa(s.Port))
		if askAt(questions.WithLogin(ctx, f.login), e, s, address, askTimeout) == nil {
			return fmt.Sprintf("the pod %s still lets the leaked login in", p.Name), nil
		}
	}
	return "", ctx.Err()
}

// Recover gives store and clients the password they had.
func (f *leaked) Recover(ctx context.Context, e *Env) error {
	if f.before == nil {
		return nil
	}
	return f.give(ctx, e, f.before)
}

// loginOf reads a login from a Secret of the application.
func loginOf(ctx context.Context, e *Env, name string) (l questions.Login, err error) {
	s, err := e.Client.CoreV1().Secrets(e.App.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return l, err
	}
	return questions.Login{User: string(s.Data[userKey]), Password: string(s.Data[passwordKey])}, nil
}

// What a password is drawn from, and how long it is.
const (
	passwordLetters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	passwordLength  = 20
)

// draw draws a word from the seed, for a purpose.
func (e *Env) draw(purpose, letters string, length int) string {
	r := e.random(purpose)
	word := make([]byte, length)
	for i := range word {
		word[i] = letters[r.IntN(len(letters))]
	}
	return string(word)
}

// random draws from the seed, for a purpose.
func (e *Env) random(purpose string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(e.Seed, h.Sum64()))
}
