package astronomy

import (
	"math/big"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
)

const nanosPerUnit = 1_000_000_000

// total is an amount in billionths of its currency's unit.
func total(m *demopb.Money) *big.Int {
	n := new(big.Int).Mul(big.NewInt(m.GetUnits()), big.NewInt(nanosPerUnit))
	return n.Add(n, big.NewInt(int64(m.GetNanos())))
}

// money is an amount of billionths, as messages have it.
func money(code string, n *big.Int) *demopb.Money {
	units, nanos := new(big.Int).QuoRem(n, big.NewInt(nanosPerUnit), new(big.Int))
	return &demopb.Money{CurrencyCode: code, Units: units.Int64(), Nanos: int32(nanos.Int64())}
}

// sum is the sum of amounts of the same currency.
func sum(a, b *demopb.Money) *demopb.Money {
	return money(a.GetCurrencyCode(), new(big.Int).Add(total(a), total(b)))
}

// times is so many times an amount.
func times(m *demopb.Money, n int32) *demopb.Money {
	return money(m.GetCurrencyCode(), new(big.Int).Mul(total(m), big.NewInt(int64(n))))
}

// price is an amount of US dollars, given in cents.
func price(cents int64) *demopb.Money {
	return money("USD", new(big.Int).Mul(big.NewInt(cents), big.NewInt(nanosPerUnit/100)))
}
