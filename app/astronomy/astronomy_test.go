package astronomy

import (
	"bytes"
	"image/jpeg"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
	"github.com/aiopslab/aiopslab/kit/kittest"
	"github.com/aiopslab/aiopslab/kit/past"
)

func TestConvert(t *testing.T) {
	c := &currency{conversions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "n"}, []string{"currency_code"})}
	for _, tt := range []struct {
		name string
		from *demopb.Money
		to   string
		want *demopb.Money // nil is an error
	}{
		{"same", &demopb.Money{CurrencyCode: "USD", Units: 3599}, "USD", &demopb.Money{CurrencyCode: "USD", Units: 3599}},
		{
			"zeros after the point stay", &demopb.Money{CurrencyCode: "EUR", Units: 1, Nanos: 80_000_000}, "EUR",
			&demopb.Money{CurrencyCode: "EUR", Units: 1, Nanos: 80_000_000},
		},
		{
			"to dollars", &demopb.Money{CurrencyCode: "EUR", Units: 100, Nanos: 80_000_000}, "USD",
			&demopb.Money{CurrencyCode: "USD", Units: 113, Nanos: 140_440_000},
		},
		{
			"what is too small is dropped", &demopb.Money{CurrencyCode: "USD", Units: 1}, "EUR",
			&demopb.Money{CurrencyCode: "EUR", Nanos: 884_564_352},
		},
		{"unknown", &demopb.Money{CurrencyCode: "EUR", Units: 1}, "ABC", nil},
		{"from unknown", &demopb.Money{CurrencyCode: "ABC", Units: 1}, "EUR", nil},
		{"from nothing", nil, "EUR", nil},
	} {
		got, err := c.Convert(t.Context(), &demopb.CurrencyConversionRequest{From: tt.from, ToCode: tt.to})
		if (err != nil) != (tt.want == nil) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if d := cmp.Diff(tt.want, got, protocmp.Transform()); err == nil && d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
	if len(perEuro) != 33 {
		t.Errorf("%d currencies", len(perEuro))
	}
}

func TestCards(t *testing.T) {
	now := time.Date(2026, time.March, 9, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, number string
		year, month  int32
		kind         string // "" is refused
	}{
		{"visa", "4432-8015-6152-0454", 2039, 1, "visa"},
		{"this month", "4432801561520454", 2026, 3, "visa"},
		{"last month", "4432801561520454", 2026, 2, ""},
		{"mastercard", "5555 5555 5555 4444", 2039, 1, "mastercard"},
		{"a digit is wrong", "4432-8015-6152-0455", 2039, 1, ""},
		{"another company", "3782-822463-10005", 2039, 1, ""},
		{"no number", "telescope", 2039, 1, ""},
		{"nothing", "", 2039, 1, ""},
	} {
		kind, err := checkCard(&demopb.CreditCardInfo{
			CreditCardNumber: tt.number, CreditCardExpirationYear: tt.year, CreditCardExpirationMonth: tt.month,
		}, now)
		if kind != tt.kind || (err != nil) != (tt.kind == "") {
			t.Errorf("%s: %q, %v", tt.name, kind, err)
		}
	}
	for _, p := range people {
		if _, err := checkCard(&demopb.CreditCardInfo{
			CreditCardNumber: p.card, CreditCardExpirationYear: p.year, CreditCardExpirationMonth: p.month,
		}, now); err != nil {
			t.Errorf("%s: %v", p.email, err)
		}
	}
}

// The cache of recommendations grows by what it is given and a quarter, until the memory is used up.
func TestLeakyCache(t *testing.T) {
	m := kittest.New(t).Machine("m", "10.244.0.2")
	m.Resources.Limit = 500 << 20
	c := &leakyCache{memory: m.Env().Memory}
	ids := make([]string, 10)
	var sizes []int64
	for range 3 {
		n, err := c.put(ids)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, n)
	}
	if d := cmp.Diff([]int64{12, 27, 46}, sizes); d != "" {
		t.Error(d)
	}
	puts := 0
	for ; puts < 1000; puts++ {
		if _, err := c.put(ids); err != nil {
			break
		}
	}
	if puts == 1000 || puts < 30 {
		t.Errorf("it takes %d more to use up the memory", puts)
	}
}

func TestOrderIDs(t *testing.T) {
	at := time.Date(2026, time.March, 9, 12, 30, 0, 700, time.UTC)
	id := orderID(at, "checkout", 99)
	if id.Version() != 1 || id.Variant() != uuid.RFC4122 {
		t.Errorf("version %v, variant %v", id.Version(), id.Variant())
	}
	if sec, nsec := id.Time().UnixTime(); !time.Unix(sec, nsec).Equal(at) {
		t.Errorf("made at %v", time.Unix(sec, nsec).UTC())
	}
}

func TestPictures(t *testing.T) {
	data, err := picture("RoofBinoculars", 3)
	if err != nil {
		t.Fatal(err)
	}
	img, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil || img.Bounds().Dx() != imageWide || !bytes.Contains(data, []byte("RoofBinoculars")) {
		t.Errorf("%v, %v", img, err)
	}
}

// Orders of the past are spread over weeks, tell their time, and are the same for all who draw them.
func TestOrdersOfThePast(t *testing.T) {
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	list := ordersBefore(p, rand.New(rand.NewPCG(7, 1)))
	again := ordersBefore(p, rand.New(rand.NewPCG(7, 1)))
	old := 0
	for i, o := range list {
		if d := cmp.Diff(o.order, again[i].order, protocmp.Transform()); d != "" {
			t.Fatal(d)
		}
		sec, nsec := uuid.MustParse(o.order.OrderId).Time().UnixTime()
		if d := o.at.Sub(time.Unix(sec, nsec)); d < 0 || d > time.Microsecond {
			t.Fatalf("order %d of %v says %v", i, o.at, time.Unix(sec, nsec))
		}
		if i > 0 && o.at.Before(list[i-1].at) || o.at.After(p.Began) {
			t.Fatalf("order %d is of %v", i, o.at)
		}
		if join.Sub(o.at) > 24*time.Hour {
			old++
		}
		if len(o.order.Items) == 0 || total(o.order.ShippingCost).Sign() <= 0 {
			t.Fatalf("order %d: %v", i, o.order)
		}
	}
	if len(list) < 100 || len(list) > 2000 || old < 20 {
		t.Errorf("%d orders, %d older than a day", len(list), old)
	}
}
