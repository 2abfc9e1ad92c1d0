package sockshop

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	userCost = 900 * time.Microsecond
	// maxListed is how many of a kind are listed, and maxField how long one field of them may be.
	maxListed = 500
	maxField  = 200
)

var userPart = part{
	name: "user", port: 80, memory: 14 << 20, size: 36 << 20, tags: `0\.4\.7`, start: startUser,
}

// customer is somebody who can log in.
type customer struct {
	ID        bson.ObjectID `bson:"_id"`
	FirstName string        `bson:"firstName"`
	LastName  string        `bson:"lastName"`
	Email     string        `bson:"email"`
	Username  string        `bson:"username"`
	Password  string        `bson:"password"`
	Salt      string        `bson:"salt"`
}

// newCustomer is what is sent to register.
type newCustomer struct {
	Username  string `json:"username"`
	Password  string `json:"password"`
	Email     string `json:"email"`
	FirstName string `json:"firstName"`
	LastName  string `json:"lastName"`
}

// address is where somebody lives.
type address struct {
	ID       bson.ObjectID `json:"-" bson:"_id"`
	Owner    string        `json:"userID,omitempty" bson:"owner"`
	Street   string        `json:"street" bson:"street"`
	Number   string        `json:"number" bson:"number"`
	Country  string        `json:"country" bson:"country"`
	City     string        `json:"city" bson:"city"`
	PostCode string        `json:"postcode" bson:"postcode"`
}

// card is what somebody pays with.
type card struct {
	ID      bson.ObjectID `json:"-" bson:"_id"`
	Owner   string        `json:"userID,omitempty" bson:"owner"`
	LongNum string        `json:"longNum" bson:"longNum"`
	Expires string        `json:"expires" bson:"expires"`
	CCV     string        `json:"ccv" bson:"ccv"`
}

// sum is how a password is kept.
func sum(salt, password string) string {
	s := sha1.Sum([]byte(salt + password))
	return hex.EncodeToString(s[:])
}

// link is the place of a thing of the user service.
func link(kind string, id bson.ObjectID, more ...string) object {
	return object{"href": "http://user/" + strings.Join(append([]string{kind, id.Hex()}, more...), "/")}
}

// shown is a customer as others are told of him.
func (c customer) shown() object {
	return object{
		"id": c.ID.Hex(), "firstName": c.FirstName, "lastName": c.LastName, "username": c.Username,
		"_links": object{
			"customer": link("customers", c.ID), "self": link("customers", c.ID),
			"addresses": link("customers", c.ID, "addresses"), "cards": link("customers", c.ID, "cards"),
		},
	}
}

func (a address) shown() object {
	return object{
		"id": a.ID.Hex(), "street": a.Street, "number": a.Number, "country": a.Country, "city": a.City,
		"postcode": a.PostCode, "_links": object{"address": link("addresses", a.ID), "self": link("addresses", a.ID)},
	}
}

// shown is a card of which only the last digits can be read.
func (c card) shown() object {
	hidden := c.LongNum
	if n := len(hidden) - 4; n > 0 {
		hidden = strings.Repeat("*", n) + hidden[n:]
	}
	return object{
		"id": c.ID.Hex(), "longNum": hidden, "expires": c.Expires, "ccv": "***",
		"_links": object{"card": link("cards", c.ID), "self": link("cards", c.ID)},
	}
}

// entity is a kind of things that the service keeps.
type entity interface {
	customer | address | card
	shown() object
}

type users struct {
	s  *server
	db *mongo.Database
}

func startUser(_ context.Context, s *server) error {
	host := s.Env.Getenv("MONGO_HOST")
	if host == "" {
		return errors.New("MONGO_HOST: want the name of a MongoDB server, such as user-db")
	}
	db, err := s.mongo(host, "users")
	if err != nil {
		return err
	}
	u := &users{s, db}
	s.Recall(u.recall)
	s.well("user-db", ping(db))
	u.count()
	handle(s, "GET /login", userCost, http.StatusOK, u.login)
	handle(s, "POST /register", userCost, http.StatusOK, u.register)
	handle(s, "POST /customers", userCost, http.StatusOK, u.register)
	serveKind[customer](u, "customers", "customer")
	serveKind[address](u, "addresses", "address")
	serveKind[card](u, "cards", "card")
	serveOwned[address](u, "addresses", "address")
	serveOwned[card](u, "cards", "card")
	handle(s, "POST /addresses", userCost, http.StatusOK, func(r *http.Request, a address) (any, error) {
		a.ID = requested(r)
		return kept(r.Context(), u, "addresses", a.ID, a, a.Owner, a.Street, a.Number, a.Country, a.City, a.PostCode)
	})
	handle(s, "POST /cards", userCost, http.StatusOK, func(r *http.Request, c card) (any, error) {
		c.ID = requested(r)
		return kept(r.Context(), u, "cards", c.ID, c, c.Owner, c.LongNum, c.Expires, c.CCV)
	})
	return nil
}

// count has requests counted under the names that only this service has.
func (u *users) count() {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "microservices_demo_user_request_count", Help: "Number of requests received.",
	}, []string{"method"})
	latency := prometheus.NewSummaryVec(prometheus.SummaryOpts{
		Name: "microservices_demo_user_request_latency_microseconds",
		Help: "Total duration of requests in microseconds.",
	}, []string{"method"})
	u.s.Registerer().MustRegister(requests, latency)
	u.s.counted = func(r *http.Request, took time.Duration) {
		name := label(path(r.Pattern))
		requests.WithLabelValues(name).Inc()
		latency.WithLabelValues(name).Observe(float64(took.Microseconds()))
	}
}

// requested is the ID of what a request makes: one that comes twice makes one. The number of a request tells when it
// was made, and so does the ID.
func requested(r *http.Request) bson.ObjectID {
	n := number(numbered(r))
	id, _ := bson.ObjectIDFromHex(hash(n))
	made, err := bson.ObjectIDFromHex(n)
	if err != nil {
		made = bson.NewObjectID()
	}
	copy(id[:4], made[:4])
	return id
}

// kept keeps something that somebody owns.
func kept(ctx context.Context, u *users, kind string, id bson.ObjectID, doc any, fields ...string) (any, error) {
	for _, f := range fields {
		if len(f) > maxField {
			return nil, refuse(http.StatusBadRequest, "a field may have at most %d characters", maxField)
		}
	}
	err := u.insert(ctx, kind, doc)
	return object{"id": id.Hex()}, err
}

func (u *users) insert(ctx context.Context, kind string, doc any) error {
	return u.s.Store(ctx, "mongodb", "insert "+kind, func(ctx context.Context) error {
		_, err := u.db.Collection(kind).InsertOne(ctx, doc)
		if mongo.IsDuplicateKeyError(err) { // The request came twice.
			err = nil
		}
		return err
	})
}

// find reads things of a kind.
func find[T entity](ctx context.Context, u *users, kind string, filter any) (list []T, err error) {
	err = u.s.Store(ctx, "mongodb", "find "+kind, func(ctx context.Context) error {
		cursor, err := u.db.Collection(kind).Find(ctx, filter, options.Find().SetLimit(maxListed))
		if err != nil {
			return err
		}
		return cursor.All(ctx, &list)
	})
	return list, err
}

// identified reads the ID in a path.
func identified(r *http.Request, one string) (bson.ObjectID, error) {
	id, err := bson.ObjectIDFromHex(r.PathValue("id"))
	if err != nil {
		return id, refuse(http.StatusNotFound, "there is no %s %.40q", one, r.PathValue("id"))
	}
	return id, nil
}

// serveKind serves all things of a kind, one of them, and its end.
func serveKind[T entity](u *users, kind, one string) {
	handle(u.s, "GET /"+kind, userCost, http.StatusOK, func(r *http.Request, _ struct{}) (any, error) {
		list, err := find[T](r.Context(), u, kind, bson.D{})
		return embedded(one, list), err
	})
	handle(u.s, "GET /"+kind+"/{id}", userCost, http.StatusOK, func(r *http.Request, _ struct{}) (any, error) {
		id, err := identified(r, one)
		if err != nil {
			return nil, err
		}
		list, err := find[T](r.Context(), u, kind, bson.M{"_id": id})
		if err == nil && len(list) == 0 {
			err = refuse(http.StatusNotFound, "there is no %s %s", one, id.Hex())
		}
		if err != nil {
			return nil, err
		}
		return list[0].shown(), nil
	})
	handle(u.s, "DELETE /"+kind+"/{id}", userCost, http.StatusOK, func(r *http.Request, _ struct{}) (any, error) {
		id, err := identified(r, one)
		if err != nil {
			return nil, err
		}
		gone := false
		err = u.s.Store(r.Context(), "mongodb", "delete "+kind, func(ctx context.Context) error {
			done, err := u.db.Collection(kind).DeleteOne(ctx, bson.M{"_id": id})
			gone = err == nil && done.DeletedCount > 0
			return err
		})
		return object{"status": gone}, err
	})
}

// serveOwned serves what a customer has of a kind.
func serveOwned[T entity](u *users, kind, one string) {
	pattern := "GET /customers/{id}/" + kind
	handle(u.s, pattern, userCost, http.StatusOK, func(r *http.Request, _ struct{}) (any, error) {
		list, err := find[T](r.Context(), u, kind, bson.M{"owner": r.PathValue("id")})
		return embedded(one, list), err
	})
}

// embedded is a list as HAL has it.
func embedded[T entity](one string, list []T) object {
	shown := []object{}
	for _, x := range list {
		shown = append(shown, x.shown())
	}
	return object{"_embedded": object{one: shown}}
}

func (u *users) login(r *http.Request, _ struct{}) (any, error) {
	name, password, _ := r.BasicAuth()
	list, err := find[customer](r.Context(), u, "customers", bson.M{"username": name})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 ||
		subtle.ConstantTimeCompare([]byte(list[0].Password), []byte(sum(list[0].Salt, password))) == 0 {
		return nil, refuse(http.StatusUnauthorized, "Unauthorized")
	}
	u.s.Log.InfoContext(r.Context(), "Login", "method", "Login", "id", list[0].ID.Hex())
	return object{"user": list[0].shown()}, nil
}

// register makes a customer, unless another one has the name.
func (u *users) register(r *http.Request, in newCustomer) (any, error) {
	for _, f := range []string{in.Username, in.Password, in.Email, in.FirstName, in.LastName} {
		if len(f) > maxField {
			return nil, refuse(http.StatusBadRequest, "a field may have at most %d characters", maxField)
		}
	}
	if in.Username == "" || in.Password == "" {
		return nil, refuse(http.StatusBadRequest, "want a username and a password")
	}
	salt := rand.Text()
	c := customer{
		ID: requested(r), FirstName: in.FirstName, LastName: in.LastName, Email: in.Email, Username: in.Username,
		Salt: salt, Password: sum(salt, in.Password),
	}
	had, err := find[customer](r.Context(), u, "customers", bson.M{"username": in.Username})
	switch {
	case err != nil:
		return nil, err
	case len(had) > 0 && had[0].ID == c.ID:
		return object{"id": c.ID.Hex()}, nil
	case len(had) > 0:
		return nil, fmt.Errorf("the username %q is taken", in.Username)
	}
	if err := u.insert(r.Context(), "customers", c); err != nil {
		return nil, err
	}
	u.s.Log.InfoContext(r.Context(), "Register", "method", "Register", "username", in.Username, "id", c.ID.Hex())
	return object{"id": c.ID.Hex()}, nil
}
