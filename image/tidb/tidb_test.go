package tidb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a TiDB cluster of machines in memory.
type cluster struct {
	t    testing.TB
	w    *kittest.World
	runs map[string]*kittest.Run
	user *kittest.Machine
}

const peers = "peer.tidb"

// newCluster starts a PD server, stores and TiDB servers.
func newCluster(t testing.TB, stores, servers int) *cluster {
	c := &cluster{t: t, w: kittest.New(t), runs: map[string]*kittest.Run{}}
	c.user = c.w.Machine("user", "10.244.9.9")
	c.start("pd", 0)
	for i := range stores {
		c.start("tikv", i)
	}
	for i := range servers {
		c.start("tidb", i)
		c.machine("tidb", i).WaitListen(":4000")
	}
	return c
}

var machines = map[string]*kittest.Machine{}

func (c *cluster) machine(kind string, i int) *kittest.Machine {
	key := fmt.Sprintf("%p/%s-%d", c, kind, i)
	if machines[key] == nil {
		net := map[string]int{"pd": 1, "tikv": 2, "tidb": 3}[kind]
		address := fmt.Sprintf("10.244.%d.%d", net, i+1)
		m := c.w.Machine(fmt.Sprintf("%s-%d", kind, i), address)
		c.w.Name(fmt.Sprintf("%s-%d.%s", kind, i, peers), address)
		for _, x := range Images(nil) {
			if x.Names[0] == "pingcap/"+kind {
				m.Install(x)
			}
		}
		machines[key] = m
	}
	return machines[key]
}

// start starts a program, for the first time or again.
func (c *cluster) start(kind string, i int) {
	c.t.Helper()
	m := c.machine(kind, i)
	host := fmt.Sprintf("%s-%d.%s", kind, i, peers)
	var args []string
	switch kind {
	case "pd":
		args = []string{
			"/pd-server", "--name=" + fmt.Sprintf("pd-%d", i), "--advertise-client-urls=http://" + host + ":2379",
			"--advertise-peer-urls=http://" + host + ":2380",
		}
	case "tikv":
		args = []string{
			"/tikv-server", "--pd=http://pd-0." + peers + ":2379", "--advertise-addr=" + host + ":20160", "--data-dir=/var/lib/tikv",
		}
	case "tidb":
		args = []string{"/tidb-server", "--store=tikv", "--path=pd-0." + peers + ":2379"}
	}
	c.runs[fmt.Sprintf("%s-%d", kind, i)] = m.Start(program(kind, args[0]), args...)
}

func program(kind, path string) kit.Program {
	for _, x := range Images(nil) {
		if x.Names[0] == "pingcap/"+kind {
			return x.Programs[path]
		}
	}
	return nil
}

func (c *cluster) stop(kind string, i int) {
	r := c.runs[fmt.Sprintf("%s-%d", kind, i)]
	r.Signal(15)
	r.Wait()
}

// db is a client of a TiDB server.
func (c *cluster) db(i int, user, password, name string) *sql.DB {
	c.t.Helper()
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.DBName = user, password, "tcp", fmt.Sprintf("10.244.3.%d:4000", i+1), name
	cfg.DialFunc = c.user.Env().Net.DialContext
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	c.t.Cleanup(func() { db.Close() })
	return db
}

func must(t testing.TB, db interface {
	ExecContext(ctx context.Context, q string, args ...any) (sql.Result, error)
}, query string, args ...any,
) sql.Result {
	t.Helper()
	r, err := db.ExecContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return r
}

func number(t testing.TB, db *sql.DB, query string, args ...any) (n int64) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// All servers show the same data, with the driver that Go programs use.
func TestCluster(t *testing.T) {
	c := newCluster(t, 3, 2)
	a, b := c.db(0, "root", "", ""), c.db(1, "root", "", "")
	must(t, a, "CREATE DATABASE bank")
	must(t, a, "CREATE TABLE bank.accounts (id BIGINT AUTO_INCREMENT, owner VARCHAR(32) NOT NULL, cents BIGINT NOT NULL "+
		"DEFAULT 0, PRIMARY KEY (id), KEY by_owner (owner)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4")
	for i := range 3 {
		r := must(t, a, "INSERT INTO bank.accounts (owner, cents) VALUES (?, ?)", fmt.Sprintf("o'%d", i), 100)
		if id, err := r.LastInsertId(); err != nil || id != int64(i+1) {
			t.Errorf("id %d, %v", id, err)
		}
	}
	if n := number(t, b, "SELECT SUM(cents) FROM bank.accounts WHERE owner <> ?", "o'1"); n != 200 {
		t.Errorf("the other server says %d", n)
	}
	var version, owner string
	if err := b.QueryRow("SELECT VERSION(), (SELECT owner FROM bank.accounts a WHERE a.id = 2)").Scan(&version, &owner); err != nil {
		t.Fatal(err)
	}
	if version != "8.0.11-TiDB-v8.1.0" || owner != "o'1" {
		t.Errorf("%s %s", version, owner)
	}
	must(t, b, "INSERT INTO bank.accounts (id, owner, cents) VALUES (2, 'x', 5) ON DUPLICATE KEY UPDATE cents = cents + VALUES(cents)")
	if n := number(t, a, "SELECT cents FROM bank.accounts WHERE id = 2"); n != 105 {
		t.Errorf("%d", n)
	}
}

// A transaction is done as a whole, or not at all; nobody sees half of it.
func TestTransaction(t *testing.T) {
	c := newCluster(t, 1, 1)
	db := c.db(0, "root", "", "test")
	must(t, db, "CREATE TABLE t (id INT PRIMARY KEY, n INT)")
	must(t, db, "INSERT INTO t VALUES (1, 10), (2, 10)")
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	if err := tx.QueryRow("SELECT n FROM t WHERE id = ? FOR UPDATE", 1).Scan(&n); err != nil || n != 10 {
		t.Fatal(n, err)
	}
	must(t, tx, "UPDATE t SET n = n - 4 WHERE id = 1")
	must(t, tx, "UPDATE t SET n = n + 4 WHERE id = 2")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	tx, err = db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	must(t, tx, "DELETE FROM t")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n := number(t, db, "SELECT n FROM t WHERE id = 2"); n != 14 {
		t.Errorf("%d", n)
	}
	// One that does nothing is taken back, and others go on.
	tx, err = db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	must(t, tx, "UPDATE t SET n = 0")
	if n := number(t, db, "SELECT SUM(n) FROM t"); n != 20 {
		t.Errorf("%d", n)
	}
	if err := tx.Commit(); err == nil {
		t.Error("a transaction that was idle for too long was committed")
	}
}

// The numbers of errors are MySQL's.
func TestErrors(t *testing.T) {
	c := newCluster(t, 1, 1)
	db := c.db(0, "root", "", "test")
	must(t, db, "CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL, UNIQUE KEY un (n))")
	must(t, db, "INSERT INTO t VALUES (1, 1)")
	must(t, db, "CREATE USER 'bank'@'%' IDENTIFIED BY 'secret'")
	for query, want := range map[string]uint16{
		"SELEC 1": 1235, "SELECT FROM WHERE": 1064, "SELECT 'x": 1064, "SELECT * FROM nothing": 1146, "SELECT x FROM t": 1054,
		"INSERT INTO t VALUES (1, 2)": 1062, "INSERT INTO t VALUES (2, 1)": 1062, "INSERT INTO t VALUES (3, NULL)": 1048,
		"USE nothing": 1049, "CREATE TABLE t (id INT)": 1050, "CREATE DATABASE test": 1007, "INSERT INTO t VALUES (1)": 1136,
		"DROP TABLE nothing": 1146, "GRANT ALL ON *.* TO bank": 1235, "SELECT @@nothing": 1193, "DROP DATABASE nothing": 1008,
		"CREATE TABLE x (a INT DEFAULT (RAND()))": 1235, "INSERT INTO t VALUES (5, RAND())": 1235, "": 1065,
		"SELECT 1; SELECT 2": 1235, "ATTACH '/etc/passwd' AS x": 1235, "PRAGMA journal_mode": 1235,
	} {
		_, err := db.Exec(query)
		var e *mysql.MySQLError
		if !errors.As(err, &e) || e.Number != want {
			t.Errorf("%s: %v, want %d", query, err, want)
		}
	}
	// A statement that the server has prepared has the same numbers, and the connection goes on.
	one, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	for query, want := range map[string]uint16{
		"INSERT INTO t VALUES (?, 7)": 1062, "SELECT * FROM nothing WHERE x = ?": 1146, "UPDATE t SET n = NULL WHERE id = ?": 1048,
	} {
		_, err := one.ExecContext(t.Context(), query, 1)
		var e *mysql.MySQLError
		if !errors.As(err, &e) || e.Number != want {
			t.Errorf("%s, prepared: %v, want %d", query, err, want)
		}
		var n int
		if err := one.QueryRowContext(t.Context(), "SELECT n FROM t WHERE id = ?", 1).Scan(&n); err != nil || n != 1 {
			t.Errorf("after %s: %d, %v", query, n, err)
		}
	}
	for _, tt := range []struct {
		user, password, db string
		want               uint16
	}{{"root", "wrong", "", 1045}, {"bank", "", "", 1045}, {"nobody", "", "", 1045}, {"bank", "secret", "nothing", 1049}, {"bank", "secret", "test", 0}} {
		err := c.db(0, tt.user, tt.password, tt.db).Ping()
		var e *mysql.MySQLError
		if tt.want == 0 && err != nil || tt.want != 0 && (!errors.As(err, &e) || e.Number != tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// What was written outlasts the death of the store that leads, and the restart of all of them.
func TestFailover(t *testing.T) {
	c := newCluster(t, 3, 1)
	db := c.db(0, "root", "", "test")
	must(t, db, "CREATE TABLE t (id INT PRIMARY KEY)")
	awaitPeers(t, c, 3)
	must(t, db, "INSERT INTO t VALUES (1)")
	c.stop("tikv", 0)
	await(t, func() bool { _, err := db.Exec("INSERT INTO t VALUES (2)"); return err == nil || duplicate(err) })
	c.start("tikv", 0)
	c.stop("tikv", 1)
	await(t, func() bool { _, err := db.Exec("INSERT INTO t VALUES (3)"); return err == nil || duplicate(err) })
	c.stop("tikv", 2)
	c.stop("tikv", 0)
	if _, err := db.Exec("INSERT INTO t VALUES (4)"); err == nil {
		t.Error("a statement succeeds without a store")
	}
	for i := range 3 {
		c.start("tikv", i)
	}
	await(t, func() bool {
		var n int
		return db.QueryRow("SELECT COUNT(*) FROM t WHERE id < 4").Scan(&n) == nil && n == 3
	})
}

// A store that is to give up its leaders does so, and does not lead again before it may. Users go on meanwhile.
func TestEvictLeader(t *testing.T) {
	c := newCluster(t, 3, 1)
	db := c.db(0, "root", "", "test")
	must(t, db, "CREATE TABLE t (id INT PRIMARY KEY)")
	awaitPeers(t, c, 3)
	const api = "http://10.244.1.1:2379/pd/api/v1/"
	leader := func() (id uint64) {
		var list struct {
			Stores []struct {
				Store  struct{ ID uint64 }
				Status struct {
					Leaders int `json:"leader_count"`
				}
			}
		}
		if err := json.Unmarshal([]byte(kittest.Get(t, c.user, api+"stores").Body), &list); err != nil {
			t.Fatal(err)
		}
		for _, s := range list.Stores {
			if s.Status.Leaders > 0 {
				if id != 0 {
					return 0 // The old one has not said yet that it leads no more.
				}
				id = s.Store.ID
			}
		}
		return id
	}
	var was uint64
	await(t, func() bool { was = leader(); return was != 0 })
	order := fmt.Sprintf(`{"name": "evict-leader-scheduler", "store_id": %d}`, was)
	if r := kittest.Ask(t, c.user, "POST", api+"schedulers", order); r.Code != 200 {
		t.Fatalf("%+v", r)
	}
	await(t, func() bool { now := leader(); return now != 0 && now != was })
	await(t, func() bool { _, err := db.Exec("INSERT INTO t VALUES (1)"); return err == nil || duplicate(err) })
	name := fmt.Sprintf("evict-leader-scheduler-%d", was)
	if r := kittest.Get(t, c.user, api+"schedulers"); !strings.Contains(r.Body, name) {
		t.Errorf("%+v", r)
	}
	for _, want := range []int{200, 404} {
		if r := kittest.Ask(t, c.user, "DELETE", api+"schedulers/"+name, ""); r.Code != want {
			t.Errorf("%+v, want %d", r, want)
		}
	}
	for order, want := range map[string]int{
		`{"name": "shuffle-leader-scheduler"}`: 400, `{"name": "evict-leader-scheduler", "store_id": 1}`: 404, `{`: 400,
	} {
		if r := kittest.Ask(t, c.user, "POST", api+"schedulers", order); r.Code != want {
			t.Errorf("%s: %+v, want %d", order, r, want)
		}
	}
}

func duplicate(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 1062
}

func await(t testing.TB, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
	}
}

// awaitPeers waits until the region has so many members.
func awaitPeers(t testing.TB, c *cluster, n int) {
	t.Helper()
	await(t, func() bool {
		r := kittest.Get(t, c.user, "http://10.244.1.1:2379/pd/api/v1/regions")
		return strings.Count(r.Body, "store_id") == n+1 // The leader is there twice.
	})
}

// Who looks around with the client finds his way.
func TestClient(t *testing.T) {
	c := newCluster(t, 1, 1)
	m := c.machine("tidb", 0)
	run := func(args ...string) string {
		t.Helper()
		r := m.Start(program("tidb", "/usr/bin/mysql"), append([]string{"mysql", "-h", "127.0.0.1", "-P", "4000", "-u", "root"}, args...)...)
		r.Wait()
		return r.Stdout.String() + r.Stderr.String()
	}
	run("-e", "CREATE DATABASE shop; CREATE TABLE shop.items (id BIGINT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20), UNIQUE (name)); INSERT INTO shop.items (name) VALUES ('a;b'), (NULL)")
	for _, tt := range []struct{ query, want string }{
		{"SHOW DATABASES", "Database\ninformation_schema\nmysql\nshop\ntest\n"},
		{"SHOW TABLES FROM shop", "Tables_in_shop\nitems\n"},
		{"SELECT * FROM shop.items", "id\tname\n1\ta;b\n2\tNULL\n"},
		{"SELECT VERSION()", "VERSION()\n8.0.11-TiDB-v8.1.0\n"},
		{"SELECT DATABASE(), 1 + 1 AS two", "DATABASE()\ttwo\nNULL\t2\n"},
		{"SHOW VARIABLES LIKE 'version'", "Variable_name\tValue\nversion\t8.0.11-TiDB-v8.1.0\n"},
		{"DESCRIBE shop.items", "Field\tType\tNull\tKey\tDefault\tExtra\nid\tbigint(20)\tNO\tPRI\tNULL\tauto_increment\nname\tvarchar(20)\tYES\t\tNULL\t\n"},
		{"SELECT table_name FROM information_schema.tables WHERE table_schema = 'shop'", "TABLE_NAME\nitems\n"},
		{"SHOW CREATE TABLE shop.items", "Table\tCreate Table\nitems\tCREATE TABLE `items` (\\n  `id` bigint(20) NOT NULL AUTO_INCREMENT,\\n  `name` varchar(20) DEFAULT NULL,\\n  PRIMARY KEY (`id`),\\n  UNIQUE KEY `name` (`name`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin\n"},
		{"SELECT * FROM nothing.at_all", "ERROR 1146 (42S02): Table 'nothing.at_all' doesn't exist\n"},
		{"SELECT User FROM mysql.user", "User\nroot\n"},
	} {
		if got := run("-e", tt.query); got != tt.want {
			t.Errorf("%s:\n%swant\n%s", tt.query, got, tt.want)
		}
	}
	if got := run("-e", "SHOW PROCESSLIST"); !strings.Contains(got, "SHOW PROCESSLIST") {
		t.Error(got)
	}
}
