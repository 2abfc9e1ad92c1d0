package astronomy

import (
	"context"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
	"github.com/aiopslab/aiopslab/app/service"
)

const currencyCost = 60 * time.Microsecond

// perEuro is what a euro is worth, in ten thousandths of each currency.
var perEuro = map[string]int64{
	"EUR": 1_0000, "USD": 1_1305, "JPY": 126_4000, "BGN": 1_9558, "CZK": 25_5920, "DKK": 7_4609, "GBP": 8597,
	"HUF": 315_5100, "PLN": 4_2996, "RON": 4_7463, "SEK": 10_5375, "CHF": 1_1360, "ISK": 136_8000, "NOK": 9_8040,
	"HRK": 7_4210, "RUB": 74_4208, "TRY": 6_1247, "AUD": 1_6072, "BRL": 4_2682, "CAD": 1_5128, "CNY": 7_5857,
	"HKD": 8_8743, "IDR": 15999_4000, "ILS": 4_0875, "INR": 79_4320, "KRW": 1275_0500, "MXN": 21_7999,
	"MYR": 4_6289, "NZD": 1_6679, "PHP": 59_0830, "SGD": 1_5349, "THB": 36_0120, "ZAR": 16_0583,
}

// currencyPart is the service currency: it converts amounts.
var currencyPart = part{
	name: "currency", port: "CURRENCY_PORT", costs: service.Costs{"": currencyCost},
	start: func(_ context.Context, s *service.Service, _ *flags) (func(*grpc.Server), error) {
		c := &currency{conversions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "app_currency_counter_total", Help: "Conversions, by the currency asked for.",
		}, []string{"currency_code"})}
		s.Registerer().MustRegister(c.conversions)
		return func(srv *grpc.Server) { demopb.RegisterCurrencyServiceServer(srv, c) }, nil
	},
}

type currency struct {
	demopb.UnimplementedCurrencyServiceServer
	conversions *prometheus.CounterVec
}

// GetSupportedCurrencies lists the codes.
func (c *currency) GetSupportedCurrencies(context.Context,
	*demopb.Empty,
) (*demopb.GetSupportedCurrenciesResponse, error) {
	return &demopb.GetSupportedCurrenciesResponse{CurrencyCodes: slices.Sorted(maps.Keys(perEuro))}, nil
}

// Convert turns an amount into another currency. What is less than a billionth is dropped.
func (c *currency) Convert(_ context.Context, req *demopb.CurrencyConversionRequest) (*demopb.Money, error) {
	from, ok := perEuro[req.GetFrom().GetCurrencyCode()]
	to, okTo := perEuro[req.ToCode]
	if !ok || !okTo {
		return nil, status.Errorf(codes.InvalidArgument, "cannot convert %q to %q: there is no such currency",
			req.GetFrom().GetCurrencyCode(), req.ToCode)
	}
	c.conversions.WithLabelValues(req.ToCode).Inc()
	n := total(req.From)
	return money(req.ToCode, n.Quo(n.Mul(n, big.NewInt(to)), big.NewInt(from))), nil
}
