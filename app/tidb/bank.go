package tidb

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	// accounts are as many as there are at first, each with this balance in cents.
	accounts = 200
	balance  = 100_000

	requestCost = 200 * time.Microsecond
	// A transaction that met another is tried again.
	tries = 4
	// databaseWait is how long the bank waits for its database at start, and databaseRetry how often it asks.
	databaseWait  = 2 * time.Minute
	databaseRetry = 250 * time.Millisecond
	maxNote       = 100
	// firstTransfer is the number of the first transfer that the bank does: those below are of the ledger's past.
	firstTransfer = 5_000_001
)

// Image has the bank as a program. The tools, by name, are what it has in /bin.
func Image(tools map[string]kit.Program) kit.Image {
	i := kit.Image{
		Names: []string{"aiopslab/bank"}, Tags: `latest|v1(\.\d+)*`,
		Programs: map[string]kit.Program{"/app/bank": bankMain},
		Vars:     map[string]string{"PATH": "/app:" + kit.DefaultPath},
		Memory:   12 << 20, Size: 60 << 20,
	}
	for name, tool := range tools {
		i.Programs["/bin/"+name] = tool
	}
	return i
}

// bank keeps accounts in a database.
type bank struct {
	s  *service.Service
	db *sql.DB
}

type account struct {
	ID    int64  `json:"id"`
	Owner string `json:"owner"`
	Cents int64  `json:"cents"`
}

type transfer struct {
	ID    int64  `json:"id"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Cents int64  `json:"cents"`
	Note  string `json:"note"`
	At    string `json:"at"`
}

type total struct {
	Accounts int64 `json:"accounts"`
	Cents    int64 `json:"cents"`
}

// bankMain is the program bank.
func bankMain(ctx context.Context, env *kit.Env) error {
	s, err := service.New(ctx, env, service.Config{Name: "bank"})
	if err != nil {
		return err
	}
	defer s.Close()
	b := &bank{s: s}
	address := cmp.Or(env.Getenv("DB_ADDRESS"), "basic-tidb:4000")
	if b.db, err = open(env, address); err != nil {
		return s.Fatal(ctx, "the address of the database makes no sense", err)
	}
	defer b.db.Close()
	if err := b.await(ctx, address); err != nil {
		return s.Fatal(ctx, "the database cannot be used", err)
	}
	s.Recall(b.recall)
	mux := http.NewServeMux()
	handle := func(pattern, name string, f func(r *http.Request) (any, error)) {
		s.HandleFunc(mux, pattern, name, requestCost, func(w http.ResponseWriter, r *http.Request) {
			b.answer(w, r, f)
		})
	}
	handle("GET /accounts/{id}", "/accounts/{id}", b.account)
	handle("GET /accounts/{id}/transfers", "/accounts/{id}/transfers", b.transfers)
	handle("POST /transfers", "/transfers", b.transfer)
	handle("GET /transfers/{id}", "/transfers/{id}", b.find)
	handle("GET /total", "/total", b.total)
	s.HandleFunc(mux, "GET /{$}", "/", requestCost, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	})
	s.Log.Info("Serving customers", "address", ":8080")
	return s.ServeHTTP(ctx, mux, ":8080")
}

const page = `<!doctype html><title>Bank</title><h1>Bank</h1>
<p><a href="accounts/1">an account</a>, <a href="accounts/1/transfers">what was sent to it</a>,
<a href="total">all there is</a>
<form method="post" action="transfers">
Send <input name="cents" value="10" size="5"> cents from <input name="from" value="1" size="3">
to <input name="to" value="2" size="3"> for <input name="note" value="lunch"> <button>Send</button></form>
`

// open makes a client of a TiDB server. It connects when it is first used.
func open(env *kit.Env, address string) (*sql.DB, error) {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DialFunc = "root", "tcp", address, env.Net.DialContext
	c.Timeout, c.ReadTimeout, c.WriteTimeout = service.StoreTimeout, 2*service.StoreTimeout, service.StoreTimeout
	c.InterpolateParams, c.Logger = true, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(8)
	db.SetConnMaxLifetime(time.Minute) // So that new servers get their part.
	return db, nil
}

// schema is what the bank needs. It is there already when another replica was quicker.
var schema = []string{
	"CREATE DATABASE IF NOT EXISTS bank",
	"CREATE TABLE IF NOT EXISTS bank.accounts (id BIGINT PRIMARY KEY, owner VARCHAR(64) NOT NULL, " +
		"cents BIGINT NOT NULL)",
	"CREATE TABLE IF NOT EXISTS bank.transfers (id BIGINT AUTO_INCREMENT PRIMARY KEY, from_id BIGINT NOT NULL, " +
		"to_id BIGINT NOT NULL, cents BIGINT NOT NULL, note VARCHAR(100) NOT NULL, at VARCHAR(32) NOT NULL, " +
		"KEY by_to (to_id, id)) AUTO_INCREMENT = " + strconv.Itoa(firstTransfer),
}

// await waits until the database has what the bank needs.
func (b *bank) await(ctx context.Context, address string) error {
	deadline := time.Now().Add(databaseWait)
	for failing := false; ; failing = true {
		err := b.prepare(ctx)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		if !failing {
			b.s.Log.Warn("The database is not ready, try again", "address", address, "error", err)
		}
		select {
		case <-time.After(databaseRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (b *bank) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*service.StoreTimeout)
	defer cancel()
	for _, q := range schema {
		if _, err := b.db.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	var n int
	if err := b.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM bank.accounts").Scan(&n); err != nil || n > 0 {
		return err
	}
	query, args := "INSERT IGNORE INTO bank.accounts (id, owner, cents) VALUES ", []any{}
	for i := 1; i <= accounts; i++ {
		if i > 1 {
			query += ", "
		}
		query += "(?, ?, ?)"
		args = append(args, i, fmt.Sprintf("customer-%d", i), balance)
	}
	_, err := b.db.ExecContext(ctx, query, args...)
	return err
}

// refusal is an error that is the customer's.
type refusal struct {
	status int
	text   string
}

func (r refusal) Error() string { return r.text }

// answer answers a request with what a function returns.
func (b *bank) answer(w http.ResponseWriter, r *http.Request, f func(r *http.Request) (any, error)) {
	v, err := f(r)
	var no refusal
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = refusal{http.StatusNotFound, "there is none"}
		fallthrough
	case errors.As(err, &no):
		errors.As(err, &no)
		http.Error(w, no.text, no.status)
		return
	case err != nil:
		b.s.Log.ErrorContext(r.Context(), "Request failed", "path", r.URL.Path, "error", err)
		http.Error(w, "the bank cannot do this at the moment", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// store runs something on the database, traced and in time.
func (b *bank) store(ctx context.Context, operation string, f func(ctx context.Context) error) error {
	return b.s.Store(ctx, "mysql", operation, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*service.StoreTimeout)
		defer cancel()
		return f(ctx)
	})
}

func number(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > 1e12 {
		return 0, refusal{http.StatusBadRequest, "want a number"}
	}
	return n, nil
}

func (b *bank) account(r *http.Request) (any, error) {
	id, err := number(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if as := r.URL.Query().Get("as"); as != "" {
		b.s.Log.Warn("Nobody may look as somebody else", "as", as)
	}
	a := account{ID: id}
	return &a, b.store(r.Context(), "select accounts", func(ctx context.Context) error {
		row := b.db.QueryRowContext(ctx, "SELECT owner, cents FROM bank.accounts WHERE id = ?", id)
		return row.Scan(&a.Owner, &a.Cents)
	})
}

const transferColumns = "SELECT id, from_id, to_id, cents, note, at FROM bank.transfers "

func (t *transfer) fields() []any { return []any{&t.ID, &t.From, &t.To, &t.Cents, &t.Note, &t.At} }

func (b *bank) find(r *http.Request) (any, error) {
	id, err := number(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var t transfer
	return &t, b.store(r.Context(), "select transfers", func(ctx context.Context) error {
		return b.db.QueryRowContext(ctx, transferColumns+"WHERE id = ?", id).Scan(t.fields()...)
	})
}

func (b *bank) transfers(r *http.Request) (any, error) {
	id, err := number(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	list := []transfer{}
	return &list, b.store(r.Context(), "select transfers", func(ctx context.Context) error {
		rows, err := b.db.QueryContext(ctx, transferColumns+"WHERE to_id = ? ORDER BY id DESC LIMIT 50", id)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var t transfer
			if err := rows.Scan(t.fields()...); err != nil {
				return err
			}
			list = append(list, t)
		}
		return rows.Err()
	})
}

func (b *bank) total(r *http.Request) (any, error) {
	var t total
	return &t, b.store(r.Context(), "select accounts", func(ctx context.Context) error {
		return b.db.QueryRowContext(ctx, "SELECT COUNT(*), SUM(cents) FROM bank.accounts").Scan(&t.Accounts, &t.Cents)
	})
}

// transfer sends money.
func (b *bank) transfer(r *http.Request) (any, error) {
	var n [3]int64
	for i, field := range []string{"from", "to", "cents"} {
		var err error
		if n[i], err = number(r.FormValue(field)); err != nil {
			return nil, err
		}
	}
	t := transfer{
		From: n[0], To: n[1], Cents: n[2], Note: r.FormValue("note"), At: time.Now().UTC().Format(time.RFC3339),
	}
	if t.From == t.To || len(t.Note) > maxNote {
		return nil, refusal{http.StatusBadRequest, "want two accounts and a short note"}
	}
	return &t, b.store(r.Context(), "transfer", func(ctx context.Context) (err error) {
		for range tries {
			if err = b.send(ctx, &t); !met(err) || ctx.Err() != nil {
				break
			}
		}
		return err
	})
}

// met reports whether a transaction met another and can be tried again.
func met(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && (e.Number == 9007 || e.Number == 1213)
}

// send does a transfer in one transaction. Accounts are locked in the order of their numbers.
func (b *bank) send(ctx context.Context, t *transfer) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var cents, found int64
	rows, err := tx.QueryContext(ctx, "SELECT id, cents FROM bank.accounts WHERE id IN (?, ?) ORDER BY id FOR UPDATE",
		t.From, t.To)
	if err != nil {
		return err
	}
	for rows.Next() {
		var id, c int64
		if err := rows.Scan(&id, &c); err != nil {
			return errors.Join(err, rows.Close())
		}
		if found++; id == t.From {
			cents = c
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	if found != 2 {
		return refusal{http.StatusNotFound, "there is no such account"}
	}
	if cents < t.Cents {
		return refusal{http.StatusConflict, "there is not enough in the account"}
	}
	_, err = tx.ExecContext(ctx, "UPDATE bank.accounts SET cents = CASE id WHEN ? THEN cents - ? ELSE cents + ? END "+
		"WHERE id IN (?, ?)", t.From, t.Cents, t.Cents, t.From, t.To)
	if err != nil {
		return err
	}
	r, err := tx.ExecContext(ctx, "INSERT INTO bank.transfers (from_id, to_id, cents, note, at) VALUES (?, ?, ?, ?, ?)",
		t.From, t.To, t.Cents, t.Note, t.At)
	if err != nil {
		return err
	}
	if t.ID, err = r.LastInsertId(); err != nil {
		return err
	}
	return tx.Commit()
}
