package tidb

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/aiopslab/aiopslab/app/ask"
)

// questions are what only the services can answer.
var questions = map[string]ask.Question{
	"bank": ask.Page("/total", func(status int, body []byte) error {
		var t total
		if status != http.StatusOK || json.Unmarshal(body, &t) != nil || t != (total{accounts, accounts * balance}) {
			return ask.Wrong("%d %s", status, body)
		}
		return nil
	}),
	"basic-tidb": askTiDB,
	"basic-pd": ask.Page("/pd/api/v1/stores", func(status int, body []byte) error {
		var list struct{ Count int }
		if status != http.StatusOK || json.Unmarshal(body, &list) != nil || list.Count == 0 {
			return ask.Wrong("%d %s", status, body)
		}
		return nil
	}),
	"jaeger": ask.Jaeger("bank"),
}

// askTiDB asks a server for what the bank has there.
func askTiDB(ctx context.Context, dial ask.Dial, address string) error {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DialFunc, c.Logger = "root", "tcp", address, dial, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var version string
	var n, sum int64
	err = db.QueryRowContext(ctx, "SELECT VERSION(), COUNT(*), SUM(cents) FROM bank.accounts").Scan(&version, &n, &sum)
	if err != nil {
		return err
	}
	if !strings.Contains(version, "TiDB") || n != accounts || sum != accounts*balance {
		return ask.Wrong("%s, %d accounts with %d", version, n, sum)
	}
	return nil
}
