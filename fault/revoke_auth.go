package fault

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/term"
)

func revokeAuth() *Kind {
	return Define(Kind{
		Name:  "revoke_auth",
		Title: "The user of a MongoDB database may not read or write it any more",
		Description: `The role readWrite is revoked from the user as whom a service logs in to its MongoDB server, and the
service is restarted. It logs in, is told that it is not authorized, and gives up: its pods are in
CrashLoopBackOff. An operator grants the role again.`,
		Cause:   Cause{term.Application, term.Authentication},
		Targets: protected,
	}, defaultAccount, func(t Target, p account) (Fault, error) {
		o, err := read(t.App)
		return &revoked{
			account: p, server: t.Service, clients: callers(t.App, t.Service),
			databases: o.databases(t.Service),
		}, err
	}, func(t Target, p account) []string {
		o, _ := read(t.App)
		script := fmt.Sprintf("db.grantRolesToUser(%q, %s)", p.User, rolesText(o.databases(t.Service)))
		return append([]string{p.mongosh(t.App, t.Service, script)}, restart(t, callers(t.App, t.Service))...)
	})
}

// mongosh is a command that runs a script as the root user.
func (c account) mongosh(a *app.App, server, script string) string {
	return fmt.Sprintf("kubectl exec %s -- mongosh admin --quiet -u %s -p %s --authenticationDatabase "+
		"admin --eval '%s'", ref(a, server), c.Root, c.RootPassword, script)
}

// revoked is a database whose user lost its role.
type revoked struct {
	account
	server    string
	clients   []string
	databases []string
}

func (f *revoked) Inject(ctx context.Context, e *Env) error {
	if err := f.change(ctx, e, "revokeRolesFromUser"); err != nil {
		return err
	}
	return deletePods(ctx, e, f.clients...)
}

func (f *revoked) Manifest(ctx context.Context, e *Env) (string, error) {
	return health(ctx, e, append([]string{f.server}, f.clients...)...)
}

func (f *revoked) Recover(ctx context.Context, e *Env) error {
	if err := f.change(ctx, e, "grantRolesToUser"); err != nil {
		return err
	}
	return restartUnready(ctx, e, f.clients...)
}

func (f *revoked) change(ctx context.Context, e *Env, command string) error {
	return f.administer(ctx, e, f.server, func(ctx context.Context, admin *mongo.Database) error {
		return admin.RunCommand(ctx, bson.D{
			{Key: command, Value: f.User},
			{Key: "roles", Value: roles(f.databases)},
		}).Err()
	})
}
