package sockshop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/aiopslab/aiopslab/app/ask"
)

// questions are what only the services can answer: with what the data they start with says.
var questions = map[string]ask.Question{
	"front-end": ask.All(
		says("/category.html", http.StatusOK, "<title>Sock Shop: all socks</title>"),
		says("/catalogue/03fef6ac-1896-4ce8-bd69-b798f85c6e0b", http.StatusOK, `"price":99.99`),
		says("/orders", http.StatusUnauthorized, "User not logged in."),
	),
	// The front-end hands this on, but has no such health.
	"catalogue": ask.All(says("/catalogue/size", http.StatusOK, `"size":9`), healthy("catalogue", "catalogue-db")),
	"carts": ask.All(
		says("/carts/nobody/items/none", http.StatusNotFound, "there is no item none"), healthy("carts", "carts-db")),
	"orders": ask.All(
		says("/orders/search/customerId?custId=nobody", http.StatusOK, `{"customerOrders":[]}`),
		healthy("orders", "orders-db")),
	"payment": ask.All(
		ask.Post("/paymentAuth", `{"amount": 1000}`, told(http.StatusOK, `"authorised":false`)), healthy("payment", "")),
	"shipping":     healthy("shipping", "shipping-rabbitmq"),
	"queue-master": healthy("queue-master", "queue-master-rabbitmq"),
	"user": ask.All(
		says("/customers/57a98d98e4b00679b4a830af", http.StatusOK, `"username":"Eve_Berger"`), healthy("user", "user-db")),
	"catalogue-db": theSocks,
	"rabbitmq":     ask.Queue("guest:guest", taskQueue, false),
	"jaeger":       ask.Jaeger("front-end"),
}

// says is a question for a page with a text in it.
func says(path string, status int, text string) ask.Question {
	return ask.Page(path, told(status, text))
}

// healthy is the question whether a service and its store are well, by its own account.
func healthy(name, store string) ask.Question {
	return ask.Page("/health", func(status int, body []byte) error {
		if err := told(http.StatusOK, `"service":"`+name+`","status":"OK"`)(status, body); err != nil || store == "" {
			return err
		}
		return told(http.StatusOK, `"service":"`+store+`","status":"OK"`)(status, body)
	})
}

func told(status int, text string) func(int, []byte) error {
	return func(got int, body []byte) error {
		if got != status || !strings.Contains(string(body), text) {
			return ask.Wrong("%d %s", got, body)
		}
		return nil
	}
}

// accessDenied is MySQL's error for a login that is not right.
const accessDenied = 1045

// theSocks asks the database for what the catalogue has there.
func theSocks(ctx context.Context, dial ask.Dial, address string) error {
	c, err := mysql.ParseDSN(defaultDSN)
	if err != nil {
		return err
	}
	if l, ok := ask.LoginOf(ctx); ok {
		c.User, c.Passwd = l.User, l.Password
	}
	c.Addr, c.DialFunc, c.Logger = address, dial, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var n int
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM sock").Scan(&n); err != nil {
		if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == accessDenied {
			return fmt.Errorf("%w: %s", ask.ErrRefused, e.Message)
		}
		return err
	}
	if n != len(socks) {
		return ask.Wrong("%d socks", n)
	}
	return nil
}
