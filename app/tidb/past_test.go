package tidb

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/aiopslab/aiopslab/kit/kittest"
	"github.com/aiopslab/aiopslab/kit/past"
)

// dbOf is a client of the bank's database as a stranger has it: with the driver's own settings.
func dbOf(t *testing.T, user *kittest.Machine) *sql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName, c.DialFunc = "root", "tcp", "basic-tidb:4000", "bank", user.Env().Net.DialContext
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

func read[T any](t *testing.T, db *sql.DB, query string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// centsBy is what a query has for each account.
func centsBy(t *testing.T, db *sql.DB, query string) map[int]int64 {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	by := map[int]int64{}
	for rows.Next() {
		var id int
		var cents int64
		if err := rows.Scan(&id, &cents); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		by[id] = cents
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return by
}

// The ledger has transfers of weeks, once, before those of today. What they moved is in the accounts, and no money is
// made or lost.
func TestGrown(t *testing.T) {
	user, recall := recallable(t)
	db := dbOf(t, user)
	if _, err := db.Exec("INSERT INTO transfers (from_id, to_id, cents, note, at) VALUES (1, 2, 0, 'today', '')"); err != nil {
		t.Fatal(err)
	}
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	for range 2 { // Another replica does the same.
		if err := recall(p); err != nil {
			t.Fatal(err)
		}
	}
	list := transfersBefore(p, rand.New(rand.NewPCG(p.Seed, 0xda7a)))
	if n := len(list); n < 300 || n > 1500 {
		t.Errorf("%d transfers of the past", n)
	}
	if n := read[int](t, db, "SELECT COUNT(*) FROM transfers"); n != len(list)+1 {
		t.Errorf("%d transfers, want %d and one", n, len(list))
	}
	if old := join.Add(-10 * 24 * time.Hour).UTC().Format(time.RFC3339); list[0].At > old || list[0].ID < 1 {
		t.Errorf("the first is %+v", list[0])
	}
	for i, x := range list[1:] {
		if was := list[i]; x.ID <= was.ID || x.At < was.At || x.From == x.To {
			t.Fatalf("%+v follows %+v", x, was)
		}
	}
	if last := read[string](t, db, "SELECT note FROM transfers ORDER BY id DESC LIMIT 1"); last != "today" {
		t.Errorf("the last transfer is for %s", last)
	}
	if sum := read[int64](t, db, "SELECT SUM(cents) FROM accounts"); sum != accounts*balance {
		t.Errorf("there are %d cents", sum)
	}
	has := centsBy(t, db, "SELECT id, cents FROM accounts")
	in := centsBy(t, db, "SELECT to_id, SUM(cents) FROM transfers GROUP BY to_id")
	out := centsBy(t, db, "SELECT from_id, SUM(cents) FROM transfers GROUP BY from_id")
	for id, cents := range has {
		if want := balance + in[id] - out[id]; cents != want {
			t.Errorf("account %d has %d cents, the ledger says %d", id, cents, want)
		}
	}
	if n := read[int](t, db, "SELECT COUNT(*) FROM accounts WHERE cents < ?", balance/2); n != 0 {
		t.Errorf("%d accounts have lost half of their money", n)
	}
}

// A client that the bank knows nothing of, with the driver's own settings, so with statements prepared by the server,
// works on the same data.
func TestStranger(t *testing.T) {
	user := bankOf(t)
	db := dbOf(t, user)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	number := func(err error) uint16 {
		var e *mysql.MySQLError
		if errors.As(err, &e) {
			return e.Number
		}
		return 0
	}
	byID, err := db.PrepareContext(ctx, "SELECT owner, cents FROM accounts WHERE id = ?")
	if err != nil {
		t.Fatal(err)
	}
	defer byID.Close()
	cents := func(id int) (n int64) {
		var owner string
		if err := byID.QueryRowContext(ctx, id).Scan(&owner, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, commit := range []bool{false, true} {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for id, by := range map[int]int{3: -70, 4: 70} {
			r, err := tx.ExecContext(ctx, "UPDATE accounts SET cents = cents + ? WHERE id = ?", by, id)
			if err != nil {
				t.Fatal(err)
			}
			if n, _ := r.RowsAffected(); n != 1 {
				t.Errorf("%d rows were changed", n)
			}
		}
		end, want := tx.Rollback, int64(balance)
		if commit {
			end, want = tx.Commit, balance-70
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if n := cents(3); n != want {
			t.Errorf("commit %v: %d cents, want %d", commit, n, want)
		}
	}
	if got := kittest.Get(t, user, "http://bank:8080/accounts/4"); got.Body != `{"id":4,"owner":"customer-4","cents":100070}`+"\n" {
		t.Errorf("the bank says %s", got.Body)
	}
	r, err := db.ExecContext(ctx, "INSERT INTO transfers (from_id, to_id, cents, note, at) VALUES (?, ?, ?, ?, ?)", 3, 4, 70,
		"größer 'als' \\ 💶", "2026-01-02T03:04:05Z")
	if err != nil {
		t.Fatal(err)
	}
	id, err := r.LastInsertId()
	if err != nil || id != firstTransfer {
		t.Errorf("the transfer is %d, %v", id, err)
	}
	if note := read[string](t, db, "SELECT note FROM transfers WHERE id = ?", id); note != "größer 'als' \\ 💶" {
		t.Errorf("the note is %s", note)
	}
	if v := read[sql.NullInt64](t, db, "SELECT MAX(cents) FROM transfers WHERE id < ?", 0); v.Valid {
		t.Errorf("the dearest of none is %v", v)
	}
	_, twice := db.ExecContext(ctx, "INSERT INTO accounts (id, owner, cents) VALUES (?, 'x', 1)", 3)
	_, nowhere := db.ExecContext(ctx, "SELECT 1 FROM nothing")
	_, nonsense := db.ExecContext(ctx, "SELECT 1 FROM WHERE")
	if a, b, c := number(twice), number(nowhere), number(nonsense); a != 1062 || b != 1146 || c != 1064 {
		t.Errorf("%v, %v, %v", twice, nowhere, nonsense)
	}
	rows, err := db.QueryContext(ctx, "SELECT id, owner FROM accounts WHERE cents = ? ORDER BY id", balance)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var id int
		var owner string
		if err := rows.Scan(&id, &owner); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil || n != accounts-2 {
		t.Errorf("%d accounts, %v", n, err)
	}
}
