package mongo

import (
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/aiopslab/aiopslab/image/mongo/internal/shell"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// sh runs the shell on the server's machine with standard input.
func (b *box) sh(stdin string, args ...string) (stdout, stderr string, code int) {
	b.t.Helper()
	env := b.server.Env(args...)
	env.Stdin = strings.NewReader(stdin)
	program := shell.Mongosh
	if args[0] == "mongo" {
		program = shell.Mongo
	}
	r := b.server.Run(program, env)
	code = r.Wait()
	return env.Stdout.(*kittest.Buffer).String(), env.Stderr.(*kittest.Buffer).String(), code
}

func TestMongosh(t *testing.T) { testMongosh(t, startBox(t)) }

// TestMongoshInACell wants the same of shells that are processes of their own.
func TestMongoshInACell(t *testing.T) {
	b := startBox(t)
	b.server.Cells = true
	testMongosh(t, b)
}

func testMongosh(t *testing.T, b *box) {
	for _, tt := range []struct {
		name string
		js   string
		out  string
	}{
		{"arithmetic", "1+1", "2\n"},
		{"string", "'a'", "a\n"},
		{"insert", "db.hotels.insertOne({_id: 1, name: 'Clift', rates: [1, 2.5], at: ISODate('2024-01-02')})", "{ acknowledged: true, insertedId: 1 }\n"},
		{"find", "db.hotels.find()", "[\n  {\n    _id: 1,\n    name: 'Clift',\n    rates: [ 1, 2.5 ],\n    at: ISODate(\"2024-01-02T00:00:00.000Z\")\n  }\n]\n"},
		{"insert many", "db.hotels.insertMany([{_id: 2, n: NumberLong(7)}, {_id: 3}])", "{ acknowledged: true, insertedIds: { '0': 2, '1': 3 } }\n"},
		{"chain", "db.hotels.find({}, {name: 0, at: 0, rates: 0}).sort({_id: -1}).skip(1).limit(1).toArray()", "[ { _id: 2, n: Long(\"7\") } ]\n"},
		{"forEach", "db.hotels.find({}, {_id: 1}).forEach(printjson)", "{ _id: 1 }\n{ _id: 2 }\n{ _id: 3 }\n"},
		{"variables", "var n = db.hotels.countDocuments({_id: {$gt: 1}}); print('n is', n)", "n is 2\n"},
		{"update", "db.hotels.updateMany({_id: {$gte: 2}}, {$set: {open: true}})", "{\n  acknowledged: true,\n  insertedId: null,\n  matchedCount: 2,\n  modifiedCount: 2,\n  upsertedCount: 0\n}\n"},
		{"findOne", "db.hotels.findOne({_id: 3})", "{ _id: 3, open: true }\n"},
		{"nothing", "db.hotels.findOne({_id: 9})", "null\n"},
		{"delete", "db.hotels.deleteOne({_id: 3})", "{ acknowledged: true, deletedCount: 1 }\n"},
		{"index", "db.hotels.createIndex({name: 1, n: -1})", "name_1_n_-1\n"},
		{"indexes", "db.hotels.getIndexes().map(x => x.name)", "[ '_id_', 'name_1_n_-1' ]\n"},
		{"sibling", "db.getSiblingDB('other').c.insertOne({_id: 1}); db.getSiblingDB('other').getCollectionNames()", "[ 'c' ]\n"},
		{"aggregate", "db.hotels.aggregate([{$group: {_id: null, n: {$sum: 1}}}])", "[ { _id: null, n: 2 } ]\n"},
		{"use", "use other\nshow collections", "c\n"},
		{"command", "db.runCommand({ping: 1})", "{ ok: 1 }\n"},
		{"create user", "db.getSiblingDB('admin').createUser({user: 'u', pwd: 'p', roles: ['read']})", "{ ok: 1 }\n"},
		{"users", "db.getSiblingDB('admin').getUsers().users[0].roles", "[ { role: 'read', db: 'admin' } ]\n"},
		{"grant", "db.getSiblingDB('admin').grantRolesToUser('u', [{role: 'readWrite', db: 'x'}])", "{ ok: 1 }\n"},
		{"get user", "db.getSiblingDB('admin').getUser('u').roles.length", "2\n"},
		{"revoke", "db.getSiblingDB('admin').revokeRolesFromUser('u', ['read'])", "{ ok: 1 }\n"},
		{"drop user", "db.getSiblingDB('admin').dropUser('u')", "{ ok: 1 }\n"},
		{"distinct", "db.hotels.distinct('name')", "[ 'Clift' ]\n"},
		{"getMore", "for (let i = 0; i < 250; i++) { db.many.insertOne({i}) } db.many.find().toArray().length", "250\n"},
		{"explain", "db.hotels.find({name: 'Clift'}).explain().queryPlanner.winningPlan.inputStage.indexName", "name_1_n_-1\n"},
		{"drop", "db.hotels.drop()", "true\n"},
		{"catch", "try { db.runCommand({nope: 1}) } catch (e) { print(e.codeName, e.message) }", "CommandNotFound no such command: 'nope'\n"},
		{"hello", "db.hello().isWritablePrimary", "true\n"},
	} {
		out, errOut, code := b.sh("", "mongosh", "--quiet", "--eval", tt.js)
		if out != tt.out || errOut != "" || code != 0 {
			t.Errorf("%s: exit %d\n got %q\nwant %q\n%s", tt.name, code, out, tt.out, errOut)
		}
	}
}

func TestMongoshErrors(t *testing.T) { testMongoshErrors(t, secured(t)) }

func TestMongoshErrorsInACell(t *testing.T) {
	b := secured(t)
	b.server.Cells = true
	testMongoshErrors(t, b)
}

func testMongoshErrors(t *testing.T, b *box) {
	for _, tt := range []struct {
		name string
		args []string
		err  string
	}{
		{"nobody", []string{"--eval", "db.getSiblingDB('geo-db').geo.find()"}, "MongoServerError: command find requires authentication\n"},
		{"password", []string{"-u", "admin", "-p", "x", "--authenticationDatabase", "admin", "--eval", "1"}, "MongoServerError: Authentication failed.\n"},
		{"role", []string{"admin", "-u", "admin", "-p", "admin", "--eval", "db.createUser({user: 'x', pwd: 'x', roles: ['nope']})"}, "MongoServerError: No role named nope@admin\n"},
		{"replica set", []string{"mongodb://root:root@127.0.0.1/admin", "--eval", "rs.initiate()"}, "MongoServerError: no such command: 'replSetInitiate'\n"},
		{"refused", []string{"--port", "1", "--eval", "1"}, "MongoNetworkError: connect ECONNREFUSED 127.0.0.1:1\n"},
		{"no host", []string{"--host", "nowhere", "--eval", "1"}, "MongoNetworkError: getaddrinfo ENOTFOUND nowhere\n"},
		{"reference", []string{"--eval", "nope()"}, "ReferenceError: nope is not defined\n"},
		{"thrown", []string{"--eval", "throw new Error('x')"}, "Error: x\n"},
	} {
		out, errOut, code := b.sh("", append([]string{"mongosh", "--quiet"}, tt.args...)...)
		if out != "" || errOut != tt.err || code != 1 {
			t.Errorf("%s: exit %d\n%q\n%q", tt.name, code, out, errOut)
		}
	}
	if out, _, code := b.sh("", "mongosh", "--eval", "quit(3)"); code != 3 || out != "" {
		t.Errorf("quit: exit %d, %q", code, out)
	}
}

// TestHotelScripts runs what AIOpsLab's scripts for its faults run.
func TestHotelScripts(t *testing.T) {
	b := secured(t)
	out, errOut, code := b.sh("use admin\ndb.revokeRolesFromUser('admin', [\n  {role: 'readWrite', db: 'geo-db'}\n])\nexit\n", "mongo", "admin", "-u", "admin", "-p", "admin", "--authenticationDatabase", "admin")
	if code != 0 || errOut != "" || !strings.Contains(out, "switched to db admin") {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	out, _, code = b.sh("", "mongo", "--quiet", "geo-db", "-u", "admin", "-p", "admin", "--authenticationDatabase", "admin", "--eval", "db.geo.find()")
	if code != 252 || !strings.Contains(out, "uncaught exception: Error: error: {") || !strings.Contains(out, `"codeName" : "Unauthorized"`) {
		t.Errorf("exit %d\n%s", code, out)
	}
	out, _, code = b.sh("", "mongo", "--quiet", "admin", "-uroot", "-proot", "--eval", "db.dropUser('admin');")
	if code != 0 || out != "true\n" {
		t.Errorf("exit %d\n%s", code, out)
	}
	out, _, code = b.sh("", "mongo", "admin", "-u", "admin", "-p", "admin")
	if code != 1 || !strings.Contains(out, "Error: Authentication failed. :") || !strings.HasSuffix(out, "exception: connect failed\nexiting with code 1\n") {
		t.Errorf("exit %d\n%s", code, out)
	}
	b.server.Write("/scripts/fix.js", "db = db.getSiblingDB('admin');\ndb.createUser({user: 'admin', pwd: 'admin', roles: [{role: 'userAdminAnyDatabase', db: 'admin'}]});\ndb.grantRolesToUser('admin', [{role: 'readWrite', db: 'geo-db'}]);\n")
	out, _, code = b.sh("", "mongo", "--quiet", "mongodb://root:root@127.0.0.1:27017/admin", "/scripts/fix.js")
	if code != 0 || !strings.HasPrefix(out, "Successfully added user: {") {
		t.Errorf("exit %d\n%s", code, out)
	}
	out, _, code = b.sh("db.geo.insert({a: 1})\ndb.geo.find({}, {_id: 0})\n", "mongo", "--quiet", "geo-db", "-u", "admin", "-p", "admin", "--authenticationDatabase", "admin")
	if code != 0 || out != "WriteResult({ \"nInserted\" : 1 })\n{ \"a\" : 1 }\n" {
		t.Errorf("exit %d\n%q", code, out)
	}
}

func TestInteractive(t *testing.T) { testInteractive(t, startBox(t)) }

func TestInteractiveInACell(t *testing.T) {
	b := startBox(t)
	b.server.Cells = true
	testInteractive(t, b)
}

func testInteractive(t *testing.T, b *box) {
	env := b.server.Env("mongosh")
	env.Terminal = &kit.Terminal{}
	keys, in := io.Pipe()
	env.Stdin = keys
	defer in.Close()
	r := b.server.Run(shell.Mongosh, env)
	r.Await("test> ")
	in.Write([]byte("db.c.insertOne({\r"))
	r.Await("... ")
	in.Write([]byte("_id: 9})\r"))
	r.Await("insertedId: 9")
	in.Write([]byte("use other\r"))
	r.Await("switched to db other\r\nother> ")
	in.Write([]byte("nope\r"))
	r.Await("ReferenceError: nope is not defined")
	in.Write([]byte("exit\r"))
	if code := r.Wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// TestHostileScripts are scripts that nest deeper than an engine has stack for, or ask for too much.
func TestHostileScripts(t *testing.T) {
	b := startBox(t)
	const deep = 1_000_000
	for name, js := range map[string]string{
		"parentheses": strings.Repeat("(", deep),
		"arrays":      strings.Repeat("[", deep),
		"not":         strings.Repeat("!", deep) + "1",
		"sum":         "1" + strings.Repeat("+1", 200_000),
		"question":    "1" + strings.Repeat("?1:1", 100_000),
		"functions":   strings.Repeat("()=>", 100_000) + "1",
		"eval":        "eval('('.repeat(1000000))",
		"indirect":    "(0, eval)('('.repeat(1000000))",
		"Function":    "Function('('.repeat(1000000))",
		"constructor": "(() => 1).constructor('('.repeat(1000000))",
		"generator":   "(function* () {}).constructor('('.repeat(1000000))",
		"async":       "(async () => 1).constructor('('.repeat(1000000))",
		"RegExp":      "new RegExp('('.repeat(1000000))",
		"match":       "'a'.match('('.repeat(1000000))",
		"search":      "'a'.search('('.repeat(1000000))",
		"JSON":        "JSON.parse('['.repeat(1000000))",
		"repeat":      "'x'.repeat(1e9)",
		"pad":         "'x'.padEnd(1e9)",
		"recursion":   "function f() { f() } f()",
		"document":    "let a = 1; for (let i = 0; i < 1000; i++) a = {a}; db.c.insertOne(a)",
		"array":       "let a = 1; for (let i = 0; i < 1000; i++) a = [a]; db.c.insertOne({a})",
		"query":       "let q = {a: 1}; for (let i = 0; i < 1000; i++) q = {$and: [q]}; db.c.find(q).toArray()",
	} {
		if _, stderr, code := b.sh("", "mongosh", "--quiet", "--eval", js); code != 1 || stderr == "" {
			t.Errorf("%s: code %d, stderr %.200q", name, code, stderr)
		}
		if _, stderr, code := b.sh(js+"\n1+1\n", "mongosh", "--quiet"); code != 0 || stderr == "" {
			t.Errorf("%s as input: code %d, stderr %.200q", name, code, stderr)
		}
	}
	if out, stderr, code := b.sh("", "mongosh", "--quiet", "--eval", "'a1b'.match(/[0-9]/)[0] + /a/.test('a') + eval('1+1') + 'aXbXc'.split(/X/).length + JSON.parse('[1]')[0] + new RegExp('A', 'i').test('a') + 'ab'.replace(/b/g, 'c')"); out != "1true231trueac\n" {
		t.Errorf("an ordinary script: %q, %q, code %d", out, stderr, code)
	}
}

// TestScriptsWithoutEnd are killed for what they take, and take nobody with them.
func TestScriptsWithoutEnd(t *testing.T) {
	b := startBox(t)
	b.server.Cells = true
	b.server.Resources.Limit = b.server.Resources.Memory() + 96<<20
	for name, js := range map[string]string{
		"array":  "a = []; while (1) a.push({x: 1})",
		"string": "s = 'x'; while (1) s += s",
		"join":   "Array(1e6).fill(1).join(Array(4000).join('x')).length",
		"sort":   "Array(3e7).fill(1).map((x, i) => -i).sort((a, b) => a - b).length",
		"print":  "s = 'x'; for (i = 0; i < 30; i++) s += s; print(s)",
		"buffer": "b = []; while (1) b.push(new ArrayBuffer(1e7).slice(1))",
	} {
		if _, stderr, code := b.sh("", "mongosh", "--quiet", "--eval", js); code != 137 {
			t.Errorf("%s: code %d, stderr %.200q", name, code, stderr)
		}
	}
	for name, js := range map[string]string{
		"toString":  "a = []; for (i = 0; i < 2e5; i++) a = [a]; a.toString()",
		"stringify": "a = []; for (i = 0; i < 2e5; i++) a = [a]; JSON.stringify(a)",
		"reviver":   "JSON.parse('[1]', function f(k, v) { return JSON.parse('[1]', f) })",
		"sort":      "function f() { [2, 1].sort(f) } f()",
		"replace":   "function f() { return 'x'.replace('x', f) } f()",
		"proxy":     "p = new Proxy({}, {get: () => p.x}); p.x",
		"getter":    "o = {get x() { return this.x }}; o.x",
	} {
		if _, stderr, code := b.sh("", "mongosh", "--quiet", "--eval", js); code != 1 && code != 139 && code != 137 || stderr == "" && code != 137 {
			t.Errorf("%s: code %d, stderr %.200q", name, code, stderr)
		}
	}
	r := b.server.Run(shell.Mongosh, b.server.Env("mongosh", "--quiet", "--eval", "print('begun'); while (1) {}"))
	r.Await("begun")
	r.Signal(syscall.SIGKILL)
	if code := r.Wait(); code != 137 {
		t.Errorf("a loop: code %d", code)
	}
	if out, stderr, code := b.sh("", "mongosh", "--quiet", "--eval", "1+1"); out != "2\n" {
		t.Errorf("after all: %q, %q, code %d", out, stderr, code)
	}
}
