package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/aiopslab/aiopslab/app"
)

// initScripts is where the image looks for what sets a new database up.
const initScripts = "/docker-entrypoint-initdb.d"

// readWrite finds the databases that an initial script lets its user read and write.
var readWrite = regexp.MustCompile(`role:\s*"readWrite",\s*db:\s*"([^"]+)"`)

// protected are an application's MongoDB servers that demand a password, and whose users come from
// an initial script.
func protected(a *app.App) []string {
	p, err := read(a)
	if err != nil {
		return nil
	}
	return services(a, func(s app.Service) bool {
		c := p.containers(s.Name)
		return s.Kind == "mongodb" && len(c) > 0 && slices.Contains(c[0].Args, "--auth") && len(p.databases(s.Name)) > 0
	})
}

// databases are those that a MongoDB server's initial script grants.
func (p parts) databases(name string) (names []string) {
	cm := p.mounted(name, initScripts)
	if cm == "" {
		return nil
	}
	for _, text := range p.configMap(cm).Data {
		for _, m := range readWrite.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// account is what a client logs in with, and who may change that.
type account struct {
	User         string `yaml:"user" doc:"the user as whom the client of the database logs in"`
	Password     string `yaml:"password" doc:"its password"`
	Root         string `yaml:"root" doc:"the user who may change users"`
	RootPassword string `yaml:"root_password" doc:"the password of that user"`
}

// Validate implements the check of parameters.
func (c account) Validate() error {
	if c.User == "" || c.Root == "" {
		return errors.New(`"user" and "root" must not be empty`)
	}
	if c.User == c.Root {
		return errors.New(`"user" must not be the one who changes users`)
	}
	return nil
}

// defaultAccount is that of AIOpsLab's applications.
var defaultAccount = account{User: "admin", Password: "admin", Root: "root", RootPassword: "root"}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

// adminTimeout is how long a MongoDB server may take to do what it is told.
const adminTimeout = 20 * time.Second

// administer calls f with the database admin of a MongoDB server, as the root user.
func (c account) administer(ctx context.Context, e *Env, name string,
	f func(context.Context, *mongo.Database) error,
) error {
	client, err := mongo.Connect(options.Client().
		ApplyURI(fmt.Sprintf("mongodb://%s.%s:27017/?directConnection=true", name, e.App.Namespace)).
		SetAuth(options.Credential{Username: c.Root, Password: c.RootPassword, AuthSource: "admin"}).
		SetDialer(dialer(e.Dial)).SetTimeout(adminTimeout).SetServerSelectionTimeout(adminTimeout))
	if err != nil {
		return err
	}
	defer client.Disconnect(context.WithoutCancel(ctx))
	if err := f(ctx, client.Database("admin")); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// codeUserNotFound is MongoDB's error code for a user that does not exist.
const codeUserNotFound = 11

// noSuchUser reports whether a server answered that it does not know a user.
func noSuchUser(err error) bool {
	var ce mongo.CommandError
	return errors.As(err, &ce) && ce.Code == codeUserNotFound
}

// roles is a list of MongoDB's roles: readWrite on each database.
func roles(databases []string) bson.A {
	list := bson.A{}
	for _, db := range databases {
		list = append(list, bson.D{{Key: "role", Value: "readWrite"}, {Key: "db", Value: db}})
	}
	return list
}

// rolesText is the same in JavaScript.
func rolesText(databases []string) string {
	text := ""
	for i, db := range databases {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("{role: %q, db: %q}", "readWrite", db)
	}
	return "[" + text + "]"
}
