package sockshop

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"time"
)

const (
	payCost = 300 * time.Microsecond
	// declineAbove is the amount above which payments are declined, unless -decline says another.
	declineAbove = 100
)

var paymentPart = part{
	name: "payment", port: 80, memory: 9 << 20, size: 33 << 20, tags: `0\.4\.3`, start: startPayment,
}

type authorisation struct {
	Authorised bool   `json:"authorised"`
	Message    string `json:"message"`
}

func startPayment(_ context.Context, s *server) error {
	flags := flag.NewFlagSet("payment", flag.ContinueOnError)
	flags.SetOutput(s.Env.Stderr)
	most := flags.Float64("decline", declineAbove, "decline payments above this amount")
	port := flags.Int("port", s.port, "where to listen")
	if err := flags.Parse(s.Env.Args[1:]); err != nil {
		return err
	}
	s.port = *port
	s.well("", nil)
	handle(s, "POST /paymentAuth", payCost, http.StatusOK, func(r *http.Request, in struct {
		Amount float64 `json:"amount"`
	},
	) (authorisation, error) {
		a := authorisation{true, "Payment authorised"}
		switch {
		case in.Amount <= 0:
			return a, fmt.Errorf("invalid payment amount %.2f", in.Amount)
		case in.Amount > *most:
			a = authorisation{false, fmt.Sprintf("Payment declined: amount exceeds %.2f", *most)}
		}
		s.Log.InfoContext(r.Context(), "Authorise", "method", "Authorise", "amount", in.Amount, "result", a.Authorised)
		return a, nil
	})
	return nil
}
