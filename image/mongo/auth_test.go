package mongo

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// secured returns a box whose server has the users of the hotel application: root, who may make
// users, and admin, who may read and write geo-db as well.
func secured(t *testing.T) *box {
	t.Helper()
	b := startBox(t, "--auth")
	local := b.connectFrom(b.server, "mongodb://127.0.0.1:27017").Database("admin")
	run(t, local, bson.D{{Key: "createUser", Value: "root"}, {Key: "pwd", Value: "root"}, {Key: "roles", Value: bson.A{bson.M{"role": "userAdminAnyDatabase", "db": "admin"}}}})
	root := b.connect("mongodb://root:root@db:27017").Database("admin")
	run(t, root, bson.D{{Key: "createUser", Value: "admin"}, {Key: "pwd", Value: "admin"}, {Key: "roles", Value: bson.A{
		bson.M{"role": "userAdminAnyDatabase", "db": "admin"}, bson.M{"role": "readWrite", "db": "geo-db"},
	}}})
	return b
}

const adminURI = "mongodb://admin:admin@db:27017"

func TestAuthentication(t *testing.T) {
	b := secured(t)
	ctx := t.Context()
	for _, mechanism := range []string{"SCRAM-SHA-1", "SCRAM-SHA-256"} {
		c := b.connect(adminURI + "/?authMechanism=" + mechanism)
		if _, err := c.Database("geo-db").Collection("geo").InsertOne(ctx, bson.M{"hotelId": mechanism}); err != nil {
			t.Errorf("%s: %v", mechanism, err)
		}
	}
	for _, uri := range []string{"mongodb://admin:wrong@db:27017", "mongodb://nobody:admin@db:27017", "mongodb://admin:admin@db:27017/?authSource=geo-db"} {
		err := b.connect(uri).Database("geo-db").Collection("geo").FindOne(ctx, bson.M{}).Err()
		if err == nil || !strings.Contains(err.Error(), "(AuthenticationFailed) Authentication failed.") {
			t.Errorf("%s: %v", uri, err)
		}
	}
	b.run.Await(`"msg":"Authentication succeeded","attr":{"mechanism":"SCRAM-SHA-256","speculative":true,"principalName":"admin","authenticationDatabase":"admin"`)
	b.run.Await(`"msg":"Authentication failed","attr":{"mechanism":"SCRAM-SHA-1","speculative":false,"principalName":"nobody","authenticationDatabase":"admin"`)
	b.run.Await(`"error":"UserNotFound: Could not find user \"nobody\" for db \"admin\""`)
	b.run.Await(`"error":"AuthenticationFailed: SCRAM authentication failed, storedKey mismatch"`)
}

func TestLocalhostException(t *testing.T) {
	b := startBox(t, "--auth")
	remote := b.connect(plainURI).Database("admin")
	create := bson.D{{Key: "createUser", Value: "root"}, {Key: "pwd", Value: "x"}, {Key: "roles", Value: bson.A{"root"}}}
	if err := errorOf(t, remote, create); err.Code != 13 || err.Message != "command createUser requires authentication" {
		t.Errorf("%v", err)
	}
	local := b.connectFrom(b.server, "mongodb://127.0.0.1:27017").Database("admin")
	if err := errorOf(t, local, bson.D{{Key: "find", Value: "c"}}); err.Code != 13 || !strings.HasPrefix(err.Message, `not authorized on admin to execute command { find: "c", lsid: { id: UUID("`) {
		t.Errorf("%v", err)
	}
	run(t, local, create)
	create[0].Value = "second"
	if err := errorOf(t, local, create); err.Code != 13 {
		t.Errorf("%v", err)
	}
}

func TestAuthorization(t *testing.T) {
	b := secured(t)
	ctx := t.Context()
	admin := b.connect(adminURI)
	geo := admin.Database("geo-db").Collection("geo")
	if _, err := geo.InsertOne(ctx, bson.M{"hotelId": "1"}); err != nil {
		t.Fatal(err)
	}
	err := admin.Database("rate-db").Collection("inventory").FindOne(ctx, bson.M{"hotelId": "1"}).Err()
	var ce driver.CommandError
	if !errors.As(err, &ce) || ce.Code != 13 || ce.Name != "Unauthorized" || !strings.HasPrefix(ce.Message, `not authorized on rate-db to execute command { find: "inventory", filter: { hotelId: "1" }, limit: 1, singleBatch: true, lsid:`) {
		t.Errorf("%v", err)
	}
	if err := errorOf(t, b.connect(plainURI).Database("geo-db"), bson.D{{Key: "find", Value: "geo"}}); err.Code != 13 || err.Message != "command find requires authentication" {
		t.Errorf("%v", err)
	}
	// Revoked and granted roles count at once, for connections that are open, too.
	db := admin.Database("admin")
	role := bson.A{bson.M{"role": "readWrite", "db": "geo-db"}}
	run(t, db, bson.D{{Key: "revokeRolesFromUser", Value: "admin"}, {Key: "roles", Value: role}})
	if err := geo.FindOne(ctx, bson.M{}).Err(); !errors.As(err, &ce) || ce.Code != 13 {
		t.Errorf("%v", err)
	}
	run(t, db, bson.D{{Key: "grantRolesToUser", Value: "admin"}, {Key: "roles", Value: role}})
	if err := geo.FindOne(ctx, bson.M{}).Err(); err != nil {
		t.Error(err)
	}
	names, err := admin.ListDatabaseNames(ctx, bson.M{})
	if err != nil || !cmp.Equal(names, []string{"admin", "geo-db"}) {
		t.Errorf("%v, %v", names, err)
	}
	// A user that is dropped is nobody, on connections that are open, too.
	root := b.connect("mongodb://root:root@db:27017").Database("admin")
	run(t, root, bson.D{{Key: "dropUser", Value: "admin"}})
	if err := geo.FindOne(ctx, bson.M{}).Err(); !errors.As(err, &ce) || ce.Message != "command find requires authentication" {
		t.Errorf("%v", err)
	}
	if err := errorOf(t, root, bson.D{{Key: "dropUser", Value: "admin"}}); err.Code != 11 || err.Message != "User 'admin@admin' not found" {
		t.Errorf("%v", err)
	}
}

func TestUsers(t *testing.T) {
	b := secured(t)
	root := b.connect("mongodb://root:root@db:27017")
	admin := root.Database("admin")
	for _, tt := range []struct {
		cmd  bson.D
		code int32
		msg  string
	}{
		{bson.D{{Key: "createUser", Value: "admin"}, {Key: "pwd", Value: "x"}, {Key: "roles", Value: bson.A{}}}, 51003, `User "admin@admin" already exists`},
		{bson.D{{Key: "createUser", Value: "u"}, {Key: "pwd", Value: "x"}, {Key: "roles", Value: bson.A{"nope"}}}, 31, "No role named nope@admin"},
		{bson.D{{Key: "createUser", Value: "u"}, {Key: "pwd", Value: "x"}}, 2, `"createUser" command requires a "roles" array`},
		{bson.D{{Key: "grantRolesToUser", Value: "u"}, {Key: "roles", Value: bson.A{"read"}}}, 11, `Could not find user "u" for db "admin"`},
		{bson.D{{Key: "updateUser", Value: "u"}, {Key: "pwd", Value: "x"}}, 11, "User u@admin not found"},
		{bson.D{{Key: "dropRole", Value: "u"}}, 31, "Role 'u@admin' not found"},
	} {
		if err := errorOf(t, admin, tt.cmd); err.Code != tt.code || err.Message != tt.msg {
			t.Errorf("%v: %d %q", tt.cmd, err.Code, err.Message)
		}
	}
	var info struct {
		Users []struct {
			ID         string `bson:"_id"`
			User, DB   string
			Roles      []bson.M
			Mechanisms []string
		}
	}
	if err := admin.RunCommand(t.Context(), bson.D{{Key: "usersInfo", Value: "admin"}}).Decode(&info); err != nil {
		t.Fatal(err)
	}
	u := info.Users[0]
	if u.ID != "admin.admin" || len(u.Roles) != 2 || u.Roles[1]["role"] != "readWrite" || !cmp.Equal(u.Mechanisms, []string{"SCRAM-SHA-1", "SCRAM-SHA-256"}) {
		t.Errorf("%+v", info)
	}
	// A role of one's own: to read one collection only.
	run(t, admin, bson.D{{Key: "createRole", Value: "looker"}, {Key: "roles", Value: bson.A{}}, {Key: "privileges", Value: bson.A{
		bson.M{"resource": bson.D{{Key: "db", Value: "geo-db"}, {Key: "collection", Value: "geo"}}, "actions": bson.A{"find"}},
	}}})
	run(t, admin, bson.D{{Key: "createUser", Value: "eve"}, {Key: "pwd", Value: "e"}, {Key: "roles", Value: bson.A{"looker"}}})
	eve := b.connect("mongodb://eve:e@db:27017").Database("geo-db")
	run(t, eve, bson.D{{Key: "find", Value: "geo"}})
	if err := errorOf(t, eve, bson.D{{Key: "find", Value: "other"}}); err.Code != 13 {
		t.Errorf("%v", err)
	}
	run(t, admin, bson.D{{Key: "updateUser", Value: "eve"}, {Key: "pwd", Value: "new"}})
	if err := b.connect("mongodb://eve:e@db:27017", options.Client()).Ping(t.Context(), nil); err == nil {
		t.Error("the old password still works")
	}
	if err := b.connect("mongodb://eve:new@db:27017").Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// TestBuiltinRoles runs one command with each role it matters to.
func TestBuiltinRoles(t *testing.T) {
	b := startBox(t, "--auth")
	local := b.connectFrom(b.server, "mongodb://127.0.0.1:27017").Database("admin")
	run(t, local, bson.D{{Key: "createUser", Value: "root"}, {Key: "pwd", Value: "root"}, {Key: "roles", Value: bson.A{"root"}}})
	root := b.connect("mongodb://root:root@db:27017").Database("admin")
	find := bson.D{{Key: "find", Value: "c"}}
	insert := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{}}}}
	stats := bson.D{{Key: "collStats", Value: "c"}}
	users := bson.D{{Key: "usersInfo", Value: 1}}
	status := bson.D{{Key: "serverStatus", Value: 1}}
	for _, tt := range []struct {
		role    string
		db      string
		allowed []bson.D
		denied  []bson.D
	}{
		{"read", "d", []bson.D{find, stats}, []bson.D{insert, users, status}},
		{"readWrite", "d", []bson.D{find, insert, stats}, []bson.D{users, status}},
		{"dbAdmin", "d", []bson.D{stats, {{Key: "dropDatabase", Value: 1}}}, []bson.D{find, insert, users}},
		{"userAdmin", "d", []bson.D{users}, []bson.D{find, insert, stats}},
		{"dbOwner", "d", []bson.D{find, insert, stats, users}, []bson.D{status}},
		{"read", "other", nil, []bson.D{find, insert, stats, users}},
		{"readAnyDatabase", "admin", []bson.D{find, stats}, []bson.D{insert, users}},
		{"readWriteAnyDatabase", "admin", []bson.D{find, insert}, []bson.D{users}},
		{"userAdminAnyDatabase", "admin", []bson.D{users}, []bson.D{find, insert}},
		{"dbAdminAnyDatabase", "admin", []bson.D{stats}, []bson.D{find, insert, users}},
		{"clusterAdmin", "admin", []bson.D{status}, []bson.D{find, insert, users}},
		{"root", "admin", []bson.D{find, insert, stats, users, status}, nil},
	} {
		t.Run(tt.role+"@"+tt.db, func(t *testing.T) {
			run(t, root, bson.D{{Key: "createUser", Value: "u"}, {Key: "pwd", Value: "u"}, {Key: "roles", Value: bson.A{bson.M{"role": tt.role, "db": tt.db}}}})
			defer run(t, root, bson.D{{Key: "dropUser", Value: "u"}})
			db := b.connect("mongodb://u:u@db:27017").Database("d")
			for _, cmd := range tt.allowed {
				run(t, db, cmd)
			}
			for _, cmd := range tt.denied {
				if err := errorOf(t, db, cmd); err.Code != 13 {
					t.Errorf("%v: %v", cmd, err)
				}
			}
		})
	}
}
