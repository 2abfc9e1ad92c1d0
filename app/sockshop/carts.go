package sockshop

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"net/http"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/aiopslab/aiopslab/app/service"
)

const (
	cartCost = 1200 * time.Microsecond
	// maxItems is how many different things a cart has room for, and maxQuantity how many of one.
	maxItems    = 100
	maxQuantity = 10_000
)

var cartsPart = part{
	name: "carts", flavour: java, port: 80, memory: 150 << 20, size: 198 << 20, tags: `0\.4\.8`, start: startCarts,
}

// item is so many of one sock in a cart.
type item struct {
	ID        string  `json:"id" bson:"_id"`
	Customer  string  `json:"-" bson:"customerId"`
	ItemID    string  `json:"itemId" bson:"itemId"`
	Quantity  int     `json:"quantity" bson:"quantity"`
	UnitPrice float64 `json:"unitPrice" bson:"unitPrice"`
}

type cart struct {
	ID       string `json:"id" bson:"_id"`
	Customer string `json:"customerId" bson:"customerId"`
	Items    []item `json:"items" bson:"-"`
}

// hash is an ID that is made of a text: 24 hexadecimal digits, as MongoDB's own have.
func hash(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:12])
}

// carts are the carts of customers, and of visitors who have not logged in.
type carts struct {
	s     *server
	items *mongo.Collection
	carts *mongo.Collection
}

func startCarts(_ context.Context, s *server) error {
	db, err := s.mongo("carts-db", "data")
	if err != nil {
		return err
	}
	c := &carts{s, db.Collection("item"), db.Collection("cart")}
	s.Recall(c.recall)
	s.well("carts-db", ping(db))
	handle(s, "GET /carts/{cust}", cartCost, http.StatusOK, c.get)
	handle(s, "DELETE /carts/{cust}", cartCost, http.StatusAccepted, func(r *http.Request, _ struct{}) (any, error) {
		return nil, c.remove(r.Context(), r.PathValue("cust"))
	})
	handle(s, "GET /carts/{cust}/merge", cartCost, http.StatusAccepted, c.merge)
	handle(s, "GET /carts/{cust}/items", cartCost, http.StatusOK, func(r *http.Request, _ struct{}) ([]item, error) {
		got, err := c.get(r, struct{}{})
		return got.Items, err
	})
	handle(s, "POST /carts/{cust}/items", cartCost, http.StatusCreated, c.add)
	handle(s, "PATCH /carts/{cust}/items", cartCost, http.StatusAccepted, c.change)
	handle(s, "GET /carts/{cust}/items/{item}", cartCost, http.StatusOK, c.item)
	handle(s, "DELETE /carts/{cust}/items/{item}", cartCost, http.StatusAccepted,
		func(r *http.Request, _ struct{}) (any, error) {
			return nil, c.drop(r.Context(), bson.M{"_id": hash(r.PathValue("cust") + "/" + r.PathValue("item"))})
		})
	return nil
}

// get returns a cart. Who has none gets one.
func (c *carts) get(r *http.Request, _ struct{}) (cart, error) {
	ctx, customer := r.Context(), r.PathValue("cust")
	got := cart{ID: hash(customer), Customer: customer, Items: []item{}}
	err := c.s.Store(ctx, "mongodb", "update cart", func(ctx context.Context) error {
		_, err := c.carts.UpdateOne(ctx, bson.M{"_id": got.ID}, bson.M{"$setOnInsert": bson.M{"customerId": customer}},
			options.UpdateOne().SetUpsert(true))
		if mongo.IsDuplicateKeyError(err) { // Somebody else has made it meanwhile.
			err = nil
		}
		return err
	})
	if err != nil {
		return got, err
	}
	list, err := service.FindAll[item](ctx, c.s.Service, c.items, bson.M{"customerId": customer})
	if list != nil {
		got.Items = list
	}
	return got, err
}

// add puts one more of a thing into a cart. A request that comes twice is done once.
func (c *carts) add(r *http.Request, in item) (item, error) {
	if in.ItemID == "" || len(in.ItemID) > 100 || in.UnitPrice < 0 {
		return in, refuse(http.StatusBadRequest, "want an itemId and a unitPrice")
	}
	customer := r.PathValue("cust")
	in.ID, in.Customer = hash(customer+"/"+in.ItemID), customer
	n, err := c.items.CountDocuments(r.Context(), bson.M{"customerId": customer})
	if err != nil {
		return in, err
	}
	if n >= maxItems {
		return in, refuse(http.StatusBadRequest, "the cart is full")
	}
	return in, c.put(r.Context(), in, 1, number(numbered(r)))
}

// put adds so many of an item, unless the request was heeded already.
func (c *carts) put(ctx context.Context, in item, more int, request string) error {
	return c.s.Store(ctx, "mongodb", "update item", func(ctx context.Context) error {
		for second := false; ; second = true {
			_, err := c.items.UpdateOne(ctx, bson.M{"_id": in.ID, "last": bson.M{"$ne": request}}, bson.M{
				"$inc": bson.M{"quantity": more}, "$set": bson.M{"unitPrice": in.UnitPrice, "last": request},
				"$setOnInsert": bson.M{"itemId": in.ItemID, "customerId": in.Customer},
			}, options.UpdateOne().SetUpsert(true))
			if !mongo.IsDuplicateKeyError(err) {
				return err
			}
			if second { // It was heeded already. The first time, another request may have made the item meanwhile.
				return nil
			}
		}
	})
}

// change sets how many of a thing there are.
func (c *carts) change(r *http.Request, in item) (any, error) {
	if in.Quantity < 1 || in.Quantity > maxQuantity {
		return nil, refuse(http.StatusBadRequest, "quantity: want a number from 1 to %d", maxQuantity)
	}
	id := hash(r.PathValue("cust") + "/" + in.ItemID)
	return nil, c.s.Store(r.Context(), "mongodb", "update item", func(ctx context.Context) error {
		done, err := c.items.UpdateOne(ctx, bson.M{"_id": id},
			bson.M{"$set": bson.M{"quantity": in.Quantity, "unitPrice": in.UnitPrice}})
		if err == nil && done.MatchedCount == 0 {
			err = refuse(http.StatusNotFound, "there is no item %s in the cart", in.ItemID)
		}
		return err
	})
}

func (c *carts) item(r *http.Request, _ struct{}) (item, error) {
	list, err := service.FindAll[item](r.Context(), c.s.Service, c.items,
		bson.M{"_id": hash(r.PathValue("cust") + "/" + r.PathValue("item"))})
	if err == nil && len(list) == 0 {
		err = refuse(http.StatusNotFound, "there is no item %s in the cart", r.PathValue("item"))
	}
	if err != nil {
		return item{}, err
	}
	return list[0], nil
}

func (c *carts) drop(ctx context.Context, which bson.M) error {
	return c.s.Store(ctx, "mongodb", "delete item", func(ctx context.Context) error {
		_, err := c.items.DeleteMany(ctx, which)
		return err
	})
}

// remove empties a cart and forgets it.
func (c *carts) remove(ctx context.Context, customer string) error {
	if err := c.drop(ctx, bson.M{"customerId": customer}); err != nil {
		return err
	}
	return c.s.Store(ctx, "mongodb", "delete cart", func(ctx context.Context) error {
		_, err := c.carts.DeleteOne(ctx, bson.M{"_id": hash(customer)})
		return err
	})
}

// merge puts what a visitor has chosen into the cart of the customer that he has logged in as.
func (c *carts) merge(r *http.Request, _ struct{}) (any, error) {
	customer, session := r.PathValue("cust"), r.URL.Query().Get("sessionId")
	if session == "" || session == customer {
		return nil, refuse(http.StatusBadRequest, "want a sessionId")
	}
	ctx := r.Context()
	list, err := service.FindAll[item](ctx, c.s.Service, c.items, bson.M{"customerId": session})
	if err != nil {
		return nil, err
	}
	for _, one := range list {
		one.Customer, one.ID = customer, hash(customer+"/"+one.ItemID)
		if err := c.put(ctx, one, one.Quantity, "merge "+session); err != nil {
			return nil, err
		}
	}
	return nil, c.remove(ctx, session)
}
