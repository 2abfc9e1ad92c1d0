package astronomy

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/app/astronomy/demopb"
	"github.com/aiopslab/aiopslab/app/service"
)

const paymentCost = 200 * time.Microsecond

// loyalties are the levels that customers have.
var loyalties = []string{"platinum", "gold", "silver", "bronze"}

// paymentPart is the service payment: it charges credit cards.
var paymentPart = part{
	name: "payment", port: "PAYMENT_PORT", costs: service.Costs{"": paymentCost},
	start: func(_ context.Context, s *service.Service, f *flags) (func(*grpc.Server), error) {
		p := &payment{s: s, flags: f, done: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "app_payment_transactions_total", Help: "Charges, by currency.",
		}, []string{"app_payment_currency"})}
		s.Registerer().MustRegister(p.done)
		return func(srv *grpc.Server) { demopb.RegisterPaymentServiceServer(srv, p) }, nil
	},
}

type payment struct {
	demopb.UnimplementedPaymentServiceServer
	s     *service.Service
	flags *flags
	done  *prometheus.CounterVec
}

// Charge charges a card. With paymentFailure it refuses a part of the charges, or all.
func (p *payment) Charge(ctx context.Context, req *demopb.ChargeRequest) (*demopb.ChargeResponse, error) {
	span := trace.SpanFromContext(ctx)
	loyalty := loyalties[rand.IntN(len(loyalties))]
	if failing := p.flags.number(ctx, paymentFailure); failing > 0 && rand.Float64() < failing {
		span.SetAttributes(attribute.String("app.loyalty.level", "gold"))
		err := status.Error(codes.Unknown, "Payment request failed. Invalid token. app.loyalty.level=gold")
		span.RecordError(err)
		p.s.Log.WarnContext(ctx, "Payment request failed. Invalid token.", slog.String("app.loyalty.level", "gold"))
		return nil, err
	}
	span.SetAttributes(attribute.String("app.loyalty.level", loyalty))
	kind, err := checkCard(req.GetCreditCard(), time.Now())
	if err != nil {
		span.RecordError(err)
		p.s.Log.WarnContext(ctx, "Charge refused", slog.Any("error", err))
		return nil, status.Error(codes.Unknown, err.Error())
	}
	id := uuid.NewString()
	p.done.WithLabelValues(req.GetAmount().GetCurrencyCode()).Inc()
	p.s.Log.InfoContext(ctx, "Transaction complete.", slog.String("transactionId", id), slog.String("cardType", kind),
		slog.String("amount", fmt.Sprintf("%d.%02d", req.GetAmount().GetUnits(), req.GetAmount().GetNanos()/1e7)),
		slog.String("currency", req.GetAmount().GetCurrencyCode()))
	return &demopb.ChargeResponse{TransactionId: id}, nil
}

// checkCard says what kind of card it is, or why it cannot be charged.
func checkCard(c *demopb.CreditCardInfo, now time.Time) (kind string, err error) {
	number := strings.NewReplacer("-", "", " ", "").Replace(c.GetCreditCardNumber())
	switch {
	case !luhn(number):
		return "", fmt.Errorf("credit card info is invalid")
	case number[0] == '4' && (len(number) == 13 || len(number) == 16 || len(number) == 19):
		kind = "visa"
	case len(number) == 16 &&
		(number[:2] >= "51" && number[:2] <= "55" || number[:4] >= "2221" && number[:4] <= "2720"):
		kind = "mastercard"
	default:
		return "", fmt.Errorf("only VISA or MasterCard is accepted")
	}
	year, month := int32(now.Year()), int32(now.Month())
	if y, m := c.GetCreditCardExpirationYear(), c.GetCreditCardExpirationMonth(); y < year || y == year && m < month {
		return "", fmt.Errorf("the credit card (ending %s) expired on %d/%d", number[len(number)-4:], m, y)
	}
	return kind, nil
}

// luhn reports whether a text is the number of a card, by its check digit.
func luhn(number string) bool {
	if len(number) < 12 || len(number) > 19 {
		return false
	}
	check := 0
	for i := range len(number) {
		d := int(number[len(number)-1-i]) - '0'
		if d < 0 || d > 9 {
			return false
		}
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		check += d
	}
	return check%10 == 0
}
