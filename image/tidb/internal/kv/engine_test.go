package kv

import (
	"strings"
	"testing"
)

func st(sql string, args ...any) Statement {
	s := Statement{SQL: sql}
	for _, a := range args {
		s.Args = append(s.Args, Value{a})
	}
	return s
}

// A copy of a database is the database, and changes of one are none of the other.
func TestDump(t *testing.T) {
	a, err := newEngine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if _, err := a.apply([]Statement{
		st(`CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, x)`), st(`INSERT INTO t (x) VALUES (?), (?)`, "a", 2.5),
	}); err != nil {
		t.Fatal(err)
	}
	data, err := a.dump()
	if err != nil {
		t.Fatal(err)
	}
	b, err := newEngine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if err := b.load(t.Context(), data); err != nil {
		t.Fatal(err)
	}
	got, err := b.apply([]Statement{st(`INSERT INTO t (x) VALUES (NULL)`)})
	if err != nil || got[0].LastID != 3 || got[0].Affected != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	for e, want := range map[*engine]int{a: 2, b: 3} {
		r, err := e.read(t.Context(), st(`SELECT * FROM t`))
		if err != nil || len(r.Rows) != want {
			t.Errorf("%v, %v", r, err)
		}
	}
}

// A command is applied as a whole or not at all, and breaks off a transaction that is open.
func TestApply(t *testing.T) {
	e, err := newEngine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	if _, err := e.apply([]Statement{st(`CREATE TABLE t (id INTEGER PRIMARY KEY)`)}); err != nil {
		t.Fatal(err)
	}
	tx, err := e.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.inside(t.Context(), tx, st(`INSERT INTO t VALUES (7)`)); err != nil {
		t.Fatal(err)
	}
	_, err = e.apply([]Statement{st(`INSERT INTO t VALUES (1)`), st(`INSERT INTO t VALUES (1)`)})
	if err == nil || !strings.Contains(err.Error(), "UNIQUE constraint failed") {
		t.Fatal(err)
	}
	if _, err := e.inside(t.Context(), tx, st(`SELECT 1`)); err != errBrokenOff {
		t.Errorf("a transaction that was broken off goes on: %v", err)
	}
	if r, err := e.read(t.Context(), st(`SELECT count(*) FROM t`)); err != nil || r.Rows[0][0].V != int64(0) {
		t.Errorf("%v, %v", r, err)
	}
}

// Nobody reaches a file of the machine, or a setting, by a statement.
func TestAllowed(t *testing.T) {
	e, err := newEngine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	for _, s := range []string{
		`ATTACH '/etc/passwd' AS a`, `VACUUM INTO '/tmp/x'`, `PRAGMA journal_mode`, `BEGIN`, `CREATE VIRTUAL TABLE t USING fts5(x)`,
		`CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END`, `SELECT load_extension('x')`, `SELECT * FROM sqlite_dbpage`, ``,
		`SELECT 1; ATTACH '/etc/passwd' AS a`, `SELECT ';'; VACUUM INTO '/tmp/x'`, `SELECT 1 --'
;VACUUM --'`,
	} {
		if r, err := e.read(t.Context(), st(s)); err == nil {
			t.Errorf("%s: %+v", s, r)
		}
	}
	r, err := e.read(t.Context(), st(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n`))
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("%v, %v", r, err)
	}
}
