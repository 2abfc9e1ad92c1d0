package mongo

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell"
)

// enter starts the image's entry point with variables.
func (b *box) enter(vars map[string]string, args ...string) {
	b.t.Helper()
	env := b.server.Env(append([]string{script}, args...)...)
	for k, v := range vars {
		env.Vars[k] = v
	}
	b.run = b.server.Run(entrypoint, env)
	b.server.WaitListen("10.244.0.2:27017") // Not before the server is there for all.
}

func TestEntrypoint(t *testing.T) {
	b := newBox(t)
	b.server.Install(Image(shell.Tools()))
	b.server.Write(initDir+"/1-users.sh", "#!/bin/bash\nmongo <<EOF\nuse admin\ndb.createUser({user: 'admin', pwd: 'admin', roles: [{role: 'readWrite', db: 'geo-db'}]})\nEOF\n")
	b.server.Write(initDir+"/2-data.js", "db.geo.insertOne({_id: 1, who: 'init'});\n")
	b.server.Write(initDir+"/readme.txt", "not a script")
	vars := map[string]string{"MONGO_INITDB_ROOT_USERNAME": "root", "MONGO_INITDB_ROOT_PASSWORD": "it's \"secret\"", "MONGO_INITDB_DATABASE": "geo-db"}
	b.enter(vars)
	if out := b.run.Stdout.String(); !strings.Contains(out, script+": running "+initDir+"/1-users.sh\n") || !strings.Contains(out, "MongoDB init process complete; ready for start up.") {
		t.Errorf("%s", out)
	}
	if errOut := b.run.Stderr.String(); errOut != "" {
		t.Errorf("%s", errOut)
	}
	var got bson.M
	geo := b.connect(adminURI).Database("geo-db").Collection("geo")
	if err := geo.FindOne(t.Context(), bson.M{}).Decode(&got); err != nil || got["who"] != "init" {
		t.Errorf("%v %v", got, err)
	}
	if err := errorOf(t, b.connect(plainURI).Database("geo-db"), bson.D{{Key: "find", Value: "geo"}}); err.Code != 13 {
		t.Errorf("%v", err)
	}
	run(t, b.connect("mongodb://root:it's%20%22secret%22@db:27017").Database("admin"), bson.D{{Key: "usersInfo", Value: 1}})
	// A database that is there is not set up again.
	if code := b.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d", code)
	}
	b.enter(vars)
	if strings.Contains(b.run.Stdout.String(), "running") {
		t.Errorf("%s", b.run.Stdout)
	}
}

func TestEntrypointWithAuth(t *testing.T) {
	// As the hotel's manifests have it: mongod --auth, and a script that makes the first users.
	b := newBox(t)
	b.server.Install(Image(shell.Tools()))
	b.server.Write(initDir+"/k8s-geo-mongo.sh", "#!/bin/bash\nset -e\nmongo <<EOF\nuse admin\ndb.createUser({user: 'root', pwd: 'root', roles: ['userAdminAnyDatabase']})\ndb.createUser({user: 'admin', pwd: 'admin', roles: ['userAdminAnyDatabase']})\ndb.grantRolesToUser('admin', [{role: 'readWrite', db: 'geo-db'}])\nEOF\n")
	b.enter(nil, "mongod", "--auth")
	if _, err := b.connect(adminURI).Database("geo-db").Collection("geo").InsertOne(t.Context(), bson.M{}); err != nil {
		t.Error(err)
	}
}

func TestEntrypointCommands(t *testing.T) {
	b := newBox(t)
	b.server.Programs["/usr/bin/echo"] = func(_ context.Context, env *kit.Env) error {
		_, err := env.Stdout.Write([]byte(strings.Join(env.Args[1:], " ")))
		return err
	}
	r := b.server.Start(entrypoint, script, "echo", "hello")
	if code := r.Wait(); code != 0 || r.Stdout.String() != "hello" {
		t.Errorf("exit %d, %q", code, r.Stdout)
	}
	env := b.server.Env(script, "mongod")
	env.Vars["MONGO_INITDB_ROOT_USERNAME"] = "root"
	r = b.server.Run(entrypoint, env)
	if code := r.Wait(); code != 1 || !strings.Contains(r.Stderr.String(), "both must be specified for a user to be created") {
		t.Errorf("exit %d, %q", code, r.Stderr)
	}
	b.server.Write(initDir+"/bad.js", "nope();\n")
	r = b.server.Start(entrypoint, script, "mongod")
	if code := r.Wait(); code != 253 || !strings.Contains(r.Stdout.String(), "failed to load: "+initDir+"/bad.js") {
		t.Errorf("exit %d\n%s", code, r.Stdout)
	}
}
