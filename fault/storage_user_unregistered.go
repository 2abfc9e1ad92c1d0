package fault

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/aiopslab/aiopslab/internal/term"
)

func storageUserUnregistered() *Kind {
	return Define(Kind{
		Name:  "storage_user_unregistered",
		Title: "A MongoDB server does not know the user of its client any more",
		Description: `The user as whom a service logs in to its MongoDB server is dropped, and the service is restarted. It
cannot log in and gives up: its pods are in CrashLoopBackOff. An operator creates the user again,
with the password and the roles it had.`,
		Cause:   Cause{term.Application, term.Authentication},
		Targets: protected,
	}, defaultAccount, func(t Target, p account) (Fault, error) {
		o, err := read(t.App)
		return &unregistered{
			account: p, server: t.Service, clients: callers(t.App, t.Service),
			databases: o.databases(t.Service),
		}, err
	}, func(t Target, p account) []string {
		o, _ := read(t.App)
		script := fmt.Sprintf("db.createUser({user: %q, pwd: %q, roles: %s})", p.User, p.Password,
			rolesText(o.databases(t.Service)))
		return append([]string{p.mongosh(t.App, t.Service, script)}, restart(t, callers(t.App, t.Service))...)
	})
}

// unregistered is a database whose user is gone.
type unregistered struct {
	account
	server    string
	clients   []string
	databases []string // what the user may use, according to the manifests
	roles     bson.A   // what it had
}

func (f *unregistered) Inject(ctx context.Context, e *Env) error {
	err := f.administer(ctx, e, f.server, func(ctx context.Context, admin *mongo.Database) error {
		if err := f.remember(ctx, admin); err != nil {
			return err
		}
		err := admin.RunCommand(ctx, bson.D{{Key: "dropUser", Value: f.User}}).Err()
		if noSuchUser(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return deletePods(ctx, e, f.clients...)
}

// remember notes the roles of the user.
func (f *unregistered) remember(ctx context.Context, admin *mongo.Database) error {
	var reply struct {
		Users []struct {
			Roles bson.A `bson:"roles"`
		} `bson:"users"`
	}
	if err := admin.RunCommand(ctx, bson.D{{Key: "usersInfo", Value: f.User}}).Decode(&reply); err != nil {
		return err
	}
	if len(reply.Users) > 0 {
		f.roles = reply.Users[0].Roles
	}
	return nil
}

func (f *unregistered) Manifest(ctx context.Context, e *Env) (string, error) {
	return health(ctx, e, append([]string{f.server}, f.clients...)...)
}

func (f *unregistered) Recover(ctx context.Context, e *Env) error {
	err := f.administer(ctx, e, f.server, func(ctx context.Context, admin *mongo.Database) error {
		had := f.roles
		if had == nil {
			had = roles(f.databases)
		}
		grant := bson.D{{Key: "grantRolesToUser", Value: f.User}, {Key: "roles", Value: had}}
		if err := admin.RunCommand(ctx, grant).Err(); !noSuchUser(err) {
			return err // It is back.
		}
		return admin.RunCommand(ctx, bson.D{
			{Key: "createUser", Value: f.User},
			{Key: "pwd", Value: f.Password},
			{Key: "roles", Value: had},
		}).Err()
	})
	if err != nil {
		return err
	}
	return restartUnready(ctx, e, f.clients...)
}
