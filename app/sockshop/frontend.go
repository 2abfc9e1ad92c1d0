package sockshop

import (
	"context"
	_ "embed"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit/page"
)

const (
	pageCost = 800 * time.Microsecond
	passCost = 1200 * time.Microsecond
	sayCost  = 1500 * time.Microsecond
)

var frontEndPart = part{
	name: "front-end", flavour: node, port: 8079, memory: 80 << 20, size: 120 << 20, tags: `0\.3\.12`,
	start: startFrontEnd,
}

//go:embed page.html
var html string

// pages are the titles of the pages. All of them are one, which shows what its name says.
var pages = map[string]string{
	"/{$}": "Sock Shop", "/index.html": "Sock Shop", "/category.html": "Sock Shop: all socks",
	"/detail.html": "Sock Shop: a sock", "/basket.html": "Sock Shop: your cart",
	"/customer-orders.html": "Sock Shop: your orders",
}

// frontEnd is what browsers talk to.
type frontEnd struct {
	s        *server
	sessions sessions
}

func startFrontEnd(_ context.Context, s *server) error {
	f := &frontEnd{s: s, sessions: newSessions(s)}
	for path, title := range pages {
		one := page.New(strings.Replace(html, "{{title}}", title, 1))
		s.HandleFunc(s.mux, "GET "+path, strings.TrimSuffix(path, "{$}"), pageCost, one.ServeHTTP)
	}
	for pattern, host := range map[string]string{
		"GET /catalogue": "catalogue", "GET /catalogue/": "catalogue", "GET /tags": "catalogue",
		"GET /customers": "user", "GET /customers/{id}": "user", "GET /addresses": "user", "GET /cards": "user",
		"GET /orders/{id}": "orders",
	} {
		s.HandleFunc(s.mux, pattern, path(pattern), passCost, func(w http.ResponseWriter, r *http.Request) {
			f.pass(w, r, host)
		})
	}
	f.visit("GET /cart", http.StatusOK, f.cart)
	f.visit("POST /cart", http.StatusCreated, f.add)
	f.visit("DELETE /cart", http.StatusAccepted, func(v *visit) (any, error) {
		_, _, err := call[any](v.ctx, f.s, http.MethodDelete, "http://carts/carts/"+v.who(), nil)
		return nil, err
	})
	f.visit("DELETE /cart/{id}", http.StatusAccepted, func(v *visit) (any, error) {
		place := "http://carts/carts/" + v.who() + "/items/" + url.PathEscape(v.r.PathValue("id"))
		_, _, err := call[any](v.ctx, f.s, http.MethodDelete, place, nil)
		return nil, err
	})
	f.visit("POST /cart/update", http.StatusAccepted, f.update)
	f.visit("GET /login", http.StatusOK, f.login)
	f.visit("POST /register", http.StatusOK, f.register)
	f.visit("GET /orders", http.StatusCreated, f.orders) // The original answers 201, too.
	f.visit("POST /orders", http.StatusCreated, f.order)
	f.visit("POST /addresses", http.StatusOK, func(v *visit) (any, error) { return f.own(v, "addresses") })
	f.visit("POST /cards", http.StatusOK, func(v *visit) (any, error) { return f.own(v, "cards") })
	f.visit("GET /address", http.StatusOK, func(v *visit) (any, error) { return f.first(v, "addresses", "address") })
	f.visit("GET /card", http.StatusOK, func(v *visit) (any, error) { return f.first(v, "cards", "card") })
	return nil
}

// pass hands a request on. As in the original, what a service answers is a success, even if it is none.
func (f *frontEnd) pass(w http.ResponseWriter, r *http.Request, host string) {
	resp, err := f.s.send(numbered(r), http.MethodGet, "http://"+host+r.URL.RequestURI(), nil, nil)
	if err != nil {
		f.s.fail(w, r, err)
		return
	}
	defer resp.Body.Close()
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(http.StatusOK)
	_, _ = io.Copy(w, io.LimitReader(resp.Body, maxBody))
}

// visit is a request of somebody who has a session.
type visit struct {
	r       *http.Request
	w       http.ResponseWriter
	ctx     context.Context
	body    []byte
	session session
}

// who is whose cart it is: the customer's, or that of the session of somebody who has not logged in.
func (v *visit) who() string {
	if v.session.Customer != "" {
		return v.session.Customer
	}
	return v.session.ID
}

// loggedIn returns the customer.
func (v *visit) loggedIn() (string, error) {
	if c, err := v.r.Cookie("logged_in"); err != nil || c.Value != v.session.ID || v.session.Customer == "" {
		return "", refuse(http.StatusUnauthorized, "User not logged in.")
	}
	return v.session.Customer, nil
}

// read reads the body of a request.
func (v *visit) read(into any) error {
	if err := json.Unmarshal(v.body, into); err != nil {
		return refuse(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	return nil
}

// visit serves requests of people with sessions.
func (f *frontEnd) visit(pattern string, code int, do func(v *visit) (any, error)) {
	f.s.HandleFunc(f.s.mux, pattern, path(pattern), sayCost, func(w http.ResponseWriter, r *http.Request) {
		v := &visit{r: r, w: w, ctx: numbered(r)}
		var err error
		if v.body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
			f.s.fail(w, r, refuse(http.StatusBadRequest, "the body cannot be read: %v", err))
			return
		}
		if v.session, err = f.sessions.of(w, r); err != nil {
			f.s.fail(w, r, err)
			return
		}
		out, err := do(v)
		if err != nil {
			f.s.fail(w, r, err)
			return
		}
		answer(w, code, out)
	})
}

func (f *frontEnd) cart(v *visit) (any, error) {
	list, _, err := call[[]item](v.ctx, f.s, http.MethodGet, "http://carts/carts/"+v.who()+"/items", nil)
	return list, err
}

// chosen is a sock, and how many of it.
type chosen struct {
	ID       string `json:"id"`
	Quantity int    `json:"quantity"`
}

// price asks what a sock costs.
func (f *frontEnd) price(v *visit) (c chosen, price float64, err error) {
	if err := v.read(&c); err != nil {
		return c, 0, err
	}
	if c.ID == "" {
		return c, 0, refuse(http.StatusBadRequest, "Must pass id of item to add")
	}
	one, _, err := call[sock](v.ctx, f.s, http.MethodGet, "http://catalogue/catalogue/"+url.PathEscape(c.ID), nil)
	return c, one.Price, err
}

func (f *frontEnd) add(v *visit) (any, error) {
	c, price, err := f.price(v)
	if err != nil {
		return nil, err
	}
	_, _, err = call[item](v.ctx, f.s, http.MethodPost, "http://carts/carts/"+v.who()+"/items",
		object{"itemId": c.ID, "unitPrice": price})
	return nil, err
}

func (f *frontEnd) update(v *visit) (any, error) {
	c, price, err := f.price(v)
	if err != nil {
		return nil, err
	}
	_, _, err = call[any](v.ctx, f.s, http.MethodPatch, "http://carts/carts/"+v.who()+"/items",
		object{"itemId": c.ID, "quantity": c.Quantity, "unitPrice": price})
	return nil, err
}

// enter lets a customer in, and gives him what he has chosen before.
func (f *frontEnd) enter(v *visit, id string) error {
	before := v.session.ID
	v.session.Customer = id
	if err := f.sessions.keep(v.ctx, v.session); err != nil {
		return err
	}
	http.SetCookie(v.w, &http.Cookie{
		Name: "logged_in", Value: v.session.ID, Path: "/", MaxAge: int(sessionTime.Seconds()),
	})
	_, _, err := call[any](v.ctx, f.s, http.MethodGet, "http://carts/carts/"+id+"/merge?sessionId="+before, nil)
	return err
}

func (f *frontEnd) login(v *visit) (any, error) {
	header := http.Header{"Authorization": v.r.Header["Authorization"]}
	resp, err := f.s.send(v.ctx, http.MethodGet, "http://user/login", nil, header)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var in struct {
		User struct {
			ID string `json:"id"`
		} `json:"user"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(&in); err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return nil, refuse(http.StatusUnauthorized, "Unauthorized")
	case resp.StatusCode != http.StatusOK || in.User.ID == "":
		return nil, refuse(http.StatusBadGateway, "the user service answers %s", resp.Status)
	}
	return "Cookie is set", f.enter(v, in.User.ID)
}

// made is what a service answers that has made something.
type made struct {
	ID string `json:"id"`
}

func (f *frontEnd) register(v *visit) (any, error) {
	var in newCustomer
	if err := v.read(&in); err != nil {
		return nil, err
	}
	out, _, err := call[made](v.ctx, f.s, http.MethodPost, "http://user/register", in)
	if err != nil {
		return nil, err
	}
	return out, f.enter(v, out.ID)
}

// own adds something that belongs to the customer.
func (f *frontEnd) own(v *visit, kind string) (any, error) {
	id, err := v.loggedIn()
	if err != nil {
		return nil, err
	}
	in := object{}
	if err := v.read(&in); err != nil {
		return nil, err
	}
	in["userID"] = id
	out, _, err := call[made](v.ctx, f.s, http.MethodPost, "http://user/"+kind, in)
	return out, err
}

// hal is a list of what a customer has.
type hal struct {
	Embedded map[string][]object `json:"_embedded"`
}

// first returns the first of what a customer has of a kind.
func (f *frontEnd) first(v *visit, kind, one string) (any, error) {
	id, err := v.loggedIn()
	if err != nil {
		return nil, err
	}
	list, _, err := call[hal](v.ctx, f.s, http.MethodGet, "http://user/customers/"+id+"/"+kind, nil)
	if err != nil {
		return nil, err
	}
	if len(list.Embedded[one]) == 0 {
		return object{"status_code": http.StatusInternalServerError}, nil // As in the original, a success.
	}
	return list.Embedded[one][0], nil
}

func (f *frontEnd) orders(v *visit) (any, error) {
	id, err := v.loggedIn()
	if err != nil {
		return nil, err
	}
	list, _, err := call[struct {
		Embedded struct {
			Orders []order `json:"customerOrders"`
		} `json:"_embedded"`
	}](v.ctx, f.s, http.MethodGet, "http://orders/orders/search/customerId?sort=date&custId="+id, nil)
	return list.Embedded.Orders, err
}

// order orders what is in the cart, to the customer's first address and with his first card.
func (f *frontEnd) order(v *visit) (any, error) {
	id, err := v.loggedIn()
	if err != nil {
		return nil, err
	}
	in := newOrder{Customer: "http://user/customers/" + id, Items: "http://carts/carts/" + id + "/items"}
	for _, part := range []struct {
		kind, one string
		into      *string
	}{{"addresses", "address", &in.Address}, {"cards", "card", &in.Card}} {
		got, err := f.first(v, part.kind, part.one)
		if err != nil {
			return nil, err
		}
		if thing, ok := got.(object); ok && thing["id"] != nil {
			*part.into = "http://user/" + part.kind + "/" + thing["id"].(string)
		}
	}
	out, _, err := call[order](v.ctx, f.s, http.MethodPost, "http://orders/orders", in)
	return out, err
}
