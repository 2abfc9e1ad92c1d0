package astronomy

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
)

// What the API of the frontend speaks.
type (
	moneyJSON struct {
		CurrencyCode string `json:"currencyCode"`
		Units        int64  `json:"units"`
		Nanos        int32  `json:"nanos"`
	}
	productJSON struct {
		ID          string    `json:"id"`
		Name        string    `json:"name"`
		Description string    `json:"description"`
		Picture     string    `json:"picture"`
		PriceUSD    moneyJSON `json:"priceUsd"`
		Categories  []string  `json:"categories"`
	}
	itemJSON struct {
		ProductID string       `json:"productId"`
		Quantity  int32        `json:"quantity"`
		Product   *productJSON `json:"product,omitempty"`
	}
	cartJSON struct {
		UserID string     `json:"userId"`
		Items  []itemJSON `json:"items"`
	}
	adJSON struct {
		RedirectURL string `json:"redirectUrl"`
		Text        string `json:"text"`
	}
	addressJSON struct {
		StreetAddress string `json:"streetAddress"`
		City          string `json:"city"`
		State         string `json:"state"`
		Country       string `json:"country"`
		ZipCode       string `json:"zipCode"`
	}
	purchaseJSON struct {
		UserID       string      `json:"userId"`
		UserCurrency string      `json:"userCurrency"`
		Address      addressJSON `json:"address"`
		Email        string      `json:"email"`
		CreditCard   struct {
			Number string `json:"creditCardNumber"`
			CVV    int32  `json:"creditCardCvv"`
			Year   int32  `json:"creditCardExpirationYear"`
			Month  int32  `json:"creditCardExpirationMonth"`
		} `json:"creditCard"`
	}
	orderItemJSON struct {
		Item itemJSON  `json:"item"`
		Cost moneyJSON `json:"cost"`
	}
	orderJSON struct {
		OrderID            string          `json:"orderId"`
		ShippingTrackingID string          `json:"shippingTrackingId"`
		ShippingCost       moneyJSON       `json:"shippingCost"`
		ShippingAddress    addressJSON     `json:"shippingAddress"`
		Items              []orderItemJSON `json:"items"`
	}
)

func moneyOf(m *demopb.Money) moneyJSON {
	return moneyJSON{m.GetCurrencyCode(), m.GetUnits(), m.GetNanos()}
}

func (a addressJSON) message() *demopb.Address {
	return &demopb.Address{
		StreetAddress: a.StreetAddress, City: a.City, State: a.State, Country: a.Country, ZipCode: a.ZipCode,
	}
}

func (f *frontend) getCart(r *http.Request) (any, error) {
	return f.cartOf(r.Context(), r.FormValue("sessionId"), currencyOf(r))
}

// cartOf is a cart with what is in it.
func (f *frontend) cartOf(ctx context.Context, user, currency string) (*cartJSON, error) {
	got, err := f.cart.GetCart(ctx, &demopb.GetCartRequest{UserId: user})
	if err != nil {
		return nil, err
	}
	c := &cartJSON{got.UserId, []itemJSON{}}
	for _, i := range got.Items {
		p, err := f.product(ctx, i.ProductId, currency)
		if err != nil {
			return nil, err
		}
		c.Items = append(c.Items, itemJSON{i.ProductId, i.Quantity, p})
	}
	return c, nil
}

func (f *frontend) addToCart(r *http.Request) (any, error) {
	var add struct {
		UserID string   `json:"userId"`
		Item   itemJSON `json:"item"`
	}
	if err := json.NewDecoder(r.Body).Decode(&add); err != nil || add.UserID == "" || add.Item.ProductID == "" ||
		add.Item.Quantity < 1 {
		return nil, badRequest("want userId, and item with productId and quantity")
	}
	_, err := f.cart.AddItem(r.Context(), &demopb.AddItemRequest{
		UserId: add.UserID, Item: &demopb.CartItem{ProductId: add.Item.ProductID, Quantity: add.Item.Quantity},
	})
	if err != nil {
		return nil, err
	}
	got, err := f.cart.GetCart(r.Context(), &demopb.GetCartRequest{UserId: add.UserID})
	if err != nil {
		return nil, err
	}
	c := &cartJSON{got.UserId, []itemJSON{}}
	for _, i := range got.Items {
		c.Items = append(c.Items, itemJSON{ProductID: i.ProductId, Quantity: i.Quantity})
	}
	return c, nil
}

func (f *frontend) emptyCart(r *http.Request) (any, error) {
	var who struct {
		UserID string `json:"userId"`
	}
	if err := json.NewDecoder(r.Body).Decode(&who); err != nil || who.UserID == "" {
		return nil, badRequest("want userId")
	}
	_, err := f.cart.EmptyCart(r.Context(), &demopb.EmptyCartRequest{UserId: who.UserID})
	return nil, err
}

func (f *frontend) placeOrder(r *http.Request) (any, error) {
	var p purchaseJSON
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil || p.UserID == "" || p.Email == "" {
		return nil, badRequest("want userId, userCurrency, address, email and creditCard")
	}
	if p.UserCurrency == "" {
		p.UserCurrency = dollars
	}
	placed, err := f.checkout.PlaceOrder(r.Context(), &demopb.PlaceOrderRequest{
		UserId: p.UserID, UserCurrency: p.UserCurrency, Address: p.Address.message(), Email: p.Email,
		CreditCard: &demopb.CreditCardInfo{
			CreditCardNumber: p.CreditCard.Number, CreditCardCvv: p.CreditCard.CVV,
			CreditCardExpirationYear: p.CreditCard.Year, CreditCardExpirationMonth: p.CreditCard.Month,
		},
	})
	if err != nil {
		return nil, err
	}
	o := placed.GetOrder()
	answer := orderJSON{
		OrderID: o.GetOrderId(), ShippingTrackingID: o.GetShippingTrackingId(),
		ShippingCost: moneyOf(o.GetShippingCost()), ShippingAddress: p.Address, Items: []orderItemJSON{},
	}
	for _, i := range o.GetItems() {
		shown, err := f.product(r.Context(), i.GetItem().GetProductId(), currencyOf(r))
		if err != nil {
			return nil, err
		}
		answer.Items = append(answer.Items, orderItemJSON{
			itemJSON{i.GetItem().GetProductId(), i.GetItem().GetQuantity(), shown}, moneyOf(i.GetCost()),
		})
	}
	return answer, nil
}
