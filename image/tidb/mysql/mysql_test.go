package mysql

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a server with variables and a script.
func start(t *testing.T, vars map[string]string, script string) (*kittest.Machine, *kittest.Run) {
	t.Helper()
	m := kittest.New(t).Machine("db", "10.244.0.9")
	i := Image(nil)
	m.Install(i)
	m.Write("/docker-entrypoint-initdb.d/1.sql", script)
	env := m.Env("docker-entrypoint.sh", "mysqld")
	for k, v := range vars {
		env.Vars[k] = v
	}
	return m, m.Run(i.Programs["/usr/local/bin/docker-entrypoint.sh"], env)
}

// open connects as somebody.
func open(t *testing.T, m *kittest.Machine, user, password string) *sql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = user, password, "tcp", "127.0.0.1:3306", "socks"
	c.DialFunc, c.Timeout, c.Logger = m.Env("x").Net.DialContext, 5*time.Second, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

const shop = `
-- what a shop begins with; not a statement
CREATE USER 'reader'@'%' IDENTIFIED BY 'it''s; secret';
CREATE TABLE sock (id VARCHAR(40) NOT NULL, name VARCHAR(20), price FLOAT, PRIMARY KEY (id)) ENGINE=InnoDB;
INSERT INTO sock VALUES ('a', 'Nerd; leg', 7.99), ('b', 'Holy', 99.99);
`

// A user that the variables have made is not made again by a script that would make it only if it is not there.
func TestUserOfTheVariables(t *testing.T) {
	m, _ := start(t, map[string]string{
		"MYSQL_ROOT_PASSWORD": "fake", "MYSQL_DATABASE": "socks", "MYSQL_USER": "reader", "MYSQL_PASSWORD": "given",
	}, strings.Replace(shop, "CREATE USER", "CREATE USER IF NOT EXISTS", 1))
	m.WaitListen(":3306")
	if err := open(t, m, "reader", "given").Ping(); err != nil {
		t.Error(err)
	}
	var e *mysql.MySQLError
	if err := open(t, m, "reader", "it's; secret").Ping(); !errors.As(err, &e) || e.Number != 1045 {
		t.Errorf("the script's password: %v", err)
	}
	root := open(t, m, "root", "fake")
	for _, s := range []string{
		"ALTER USER IF EXISTS 'nobody' IDENTIFIED BY 'x'", "ALTER USER 'reader'@'%' IDENTIFIED BY 'new'",
	} {
		if _, err := root.Exec(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	if err := open(t, m, "reader", "given").Ping(); !errors.As(err, &e) || e.Number != 1045 {
		t.Errorf("the password before: %v", err)
	}
	if err := open(t, m, "reader", "new").Ping(); err != nil {
		t.Error(err)
	}
}

// A server that is started with what another has kept has its tables and users.
func TestKept(t *testing.T) {
	m := kittest.New(t).Machine("db", "10.244.0.9")
	i := Image(nil)
	m.Install(i)
	m.Write("/docker-entrypoint-initdb.d/1.sql", shop)
	var keep kit.Keeping
	run := func(kept any) *kittest.Run {
		env := m.Env("docker-entrypoint.sh", "mysqld")
		env.Vars["MYSQL_ROOT_PASSWORD"], env.Vars["MYSQL_DATABASE"] = "fake", "socks"
		env.OnKeep(func(f kit.Keeping) { keep = f }, kept)
		r := m.Run(i.Programs["/usr/local/bin/docker-entrypoint.sh"], env)
		m.WaitListen(":3306")
		return r
	}
	first := run(nil)
	if _, err := open(t, m, "root", "fake").Exec("UPDATE sock SET name = 'kept' WHERE id = 'a'"); err != nil {
		t.Fatal(err)
	}
	kept, bytes, err := keep(t.Context())
	if err != nil || bytes == 0 {
		t.Fatalf("%d bytes, %v", bytes, err)
	}
	if _, err := open(t, m, "root", "fake").Exec("DROP TABLE sock"); err != nil {
		t.Fatal(err)
	}
	first.Signal(syscall.SIGKILL)
	first.Wait()
	run(kept)
	var name string
	if err := open(t, m, "reader", "it's; secret").QueryRow("SELECT name FROM sock WHERE id = 'a'").Scan(&name); err != nil ||
		name != "kept" {
		t.Errorf("%q, %v", name, err)
	}
}

func TestServer(t *testing.T) {
	m, _ := start(t, map[string]string{"MYSQL_ROOT_PASSWORD": "fake", "MYSQL_DATABASE": "socks"}, shop)
	m.WaitListen(":3306")
	db := open(t, m, "reader", "it's; secret")
	var name string
	var price float64
	if err := db.QueryRow("SELECT name, price FROM sock WHERE id = ?", "a").Scan(&name, &price); err != nil ||
		name != "Nerd; leg" || price != 7.99 {
		t.Errorf("%q, %g, %v", name, price, err)
	}
	var version string
	if err := db.QueryRow("SELECT VERSION()").Scan(&version); err != nil || version != Version {
		t.Errorf("%q, %v", version, err)
	}
	var e *mysql.MySQLError
	if err := open(t, m, "reader", "wrong").Ping(); !errors.As(err, &e) || e.Number != 1045 {
		t.Errorf("a wrong password: %v", err)
	}
	if err := open(t, m, "root", "").Ping(); !errors.As(err, &e) || e.Number != 1045 {
		t.Errorf("root without a password: %v", err)
	}

	// What is rolled back was not done, and what is open keeps others waiting no longer than it may be idle.
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE sock SET price = 1"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	tx, err = db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("DELETE FROM sock WHERE id = 'b'"); err != nil {
		t.Fatal(err)
	}
	root := open(t, m, "root", "fake")
	var prices []float64
	rows, err := root.Query("SELECT price FROM sock ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var p float64
		if err := rows.Scan(&p); err != nil {
			t.Fatal(err)
		}
		prices = append(prices, p)
	}
	if d := cmp.Diff([]float64{7.99, 99.99}, prices); d != "" {
		t.Error(d)
	}
	if err := tx.Commit(); err == nil {
		t.Error("a transaction that was idle for too long is committed")
	}

	client := m.Start(Image(nil).Programs["/usr/bin/mysql"], "mysql", "-uroot", "-pfake", "socks", "-e",
		"SHOW TABLES; SELECT @@version_comment")
	if code := client.Wait(); code != 0 || !strings.Contains(client.Stdout.String(), "sock\n") ||
		strings.Contains(client.Stdout.String(), "TiDB") {
		t.Errorf("exit %d: %s%s", code, client.Stdout, client.Stderr)
	}
}

// A server that cannot begin says why, and ends.
func TestCannotBegin(t *testing.T) {
	for name, tt := range map[string]struct {
		vars   map[string]string
		script string
		want   string
	}{
		"no password": {nil, "", "set MYSQL_ROOT_PASSWORD or MYSQL_ALLOW_EMPTY_PASSWORD"},
		"a bad script": {
			map[string]string{"MYSQL_ALLOW_EMPTY_PASSWORD": "1", "MYSQL_DATABASE": "socks"},
			"CREATE TABLE t (a INT);\nINSERT INTO u VALUES (1);", "1.sql: line 2: ERROR 1146",
		},
		"a bad name": {
			map[string]string{"MYSQL_ALLOW_EMPTY_PASSWORD": "1", "MYSQL_DATABASE": "a`b.c"},
			"",
			"MYSQL_DATABASE or MYSQL_USER",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, run := start(t, tt.vars, tt.script)
			if code := run.Wait(); code != 1 || !strings.Contains(run.Stderr.String(), tt.want) {
				t.Errorf("exit %d: %s", code, run.Stderr)
			}
		})
	}
}
