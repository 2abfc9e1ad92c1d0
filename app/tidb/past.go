package tidb

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit/past"
)

const (
	// transferRate is how many transfers customers make in a second, about.
	transferRate = 1.5
	// transfersAtOnce is how many are written by one statement.
	transfersAtOnce = 100
	// dearest is the most cents that one was of: a few hundred of them leave nobody without money.
	dearest = 50
)

// notes are what people send money for.
var notes = []string{
	"lunch", "rent", "coffee", "tickets", "the book", "taxi", "birthday present", "groceries", "thanks",
	"dinner on friday",
}

// transfersBefore draws the transfers of the past that the ledger still has, the first one first. Their numbers tell
// how many there were between them.
func transfersBefore(p *past.Past, r *rand.Rand) (list []transfer) {
	for _, t := range p.Fade(r, p.Began, transferRate, service.Grown) {
		x := transfer{
			ID: firstTransfer - 1 - int64(transferRate*p.Work(t, p.Began)), From: 1 + r.Int64N(accounts),
			To: 1 + r.Int64N(accounts-1), Cents: 1 + r.Int64N(dearest), Note: notes[r.IntN(len(notes))],
			At: t.UTC().Format(time.RFC3339),
		}
		if x.To >= x.From {
			x.To++
		}
		if n := len(list); n > 0 {
			x.ID = min(x.ID, list[n-1].ID-1)
		}
		if x.ID < 1 {
			break
		}
		list = append(list, x)
	}
	slices.Reverse(list)
	return list
}

// recall writes the transfers of the past and moves the money, unless another replica has done it.
func (b *bank) recall(ctx context.Context, p *past.Past, r *rand.Rand) (err error) {
	list := transfersBefore(p, r)
	for range tries {
		if err = b.enter(ctx, list); !met(err) || ctx.Err() != nil {
			break
		}
	}
	return err
}

// enter writes transfers in one transaction, with what they change of the accounts.
func (b *bank) enter(ctx context.Context, list []transfer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*service.StoreTimeout)
	defer cancel()
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	moved := map[int64]int64{}
	for some := range slices.Chunk(list, transfersAtOnce) {
		var args []any
		for _, x := range some {
			args = append(args, x.ID, x.From, x.To, x.Cents, x.Note, x.At)
			moved[x.From] -= x.Cents
			moved[x.To] += x.Cents
		}
		query := "INSERT IGNORE INTO bank.transfers (id, from_id, to_id, cents, note, at) VALUES " +
			strings.Repeat(", (?, ?, ?, ?, ?, ?)", len(some))[2:]
		done, err := tx.ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return err // They are there already.
		}
	}
	if len(moved) == 0 {
		return nil
	}
	query, args := "UPDATE bank.accounts SET cents = cents + CASE id", []any{}
	ids := make([]int64, 0, len(moved))
	for id := range moved {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, cmp.Compare)
	for _, id := range ids {
		query, args = query+" WHEN ? THEN ?", append(args, id, moved[id])
	}
	if _, err := tx.ExecContext(ctx, query+" ELSE 0 END", args...); err != nil {
		return err
	}
	return tx.Commit()
}
