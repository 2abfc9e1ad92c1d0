package astronomy

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	emailCost = 250 * time.Microsecond
	// mailBytes is what a mail takes while it is kept.
	mailBytes = 4 << 10
)

// confirmation is a mail to be sent.
type confirmation struct {
	Email string `json:"email"`
	Order struct {
		OrderID string `json:"order_id"`
	} `json:"order"`
}

// emailMain is the program email: it tells customers that they have ordered something.
func emailMain(ctx context.Context, env *kit.Env) error {
	s, err := start(ctx, env, "email")
	if err != nil {
		return err
	}
	defer s.Close()
	f, err := openFlags(ctx, s)
	if err != nil {
		return s.Fatal(ctx, "cannot reach the feature flags", err)
	}
	defer f.close()
	h := &email{s: s, flags: f, sent: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "app_confirmation_counter_total", Help: "Mails that were sent.",
	})}
	s.Registerer().MustRegister(h.sent)
	mux := http.NewServeMux()
	s.HandleFunc(mux, "POST /send_order_confirmation", "/send_order_confirmation", emailCost, h.send)
	address := listenAddress(env, "EMAIL_PORT")
	s.Log.Info("email service listening", slog.String("address", address))
	return s.ServeHTTP(ctx, http.MaxBytesHandler(mux, maxBody), address)
}

type email struct {
	s     *service.Service
	flags *flags
	sent  prometheus.Counter
}

// send sends a mail, to nobody. With emailMemoryLeak mails are kept, and are many times as long.
func (h *email) send(w http.ResponseWriter, r *http.Request) {
	var c confirmation
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil || c.Email == "" || c.Order.OrderID == "" {
		http.Error(w, "want the email address and the order", http.StatusBadRequest)
		return
	}
	if padding := h.flags.number(r.Context(), emailMemoryLeak); padding > 0 {
		if err := h.s.Env.Memory.Add(int64(min(padding, 1e6) * mailBytes)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	h.sent.Inc()
	h.s.Log.InfoContext(r.Context(), "Order confirmation email sent", slog.String("to", c.Email),
		slog.String("order", c.Order.OrderID))
	w.WriteHeader(http.StatusOK)
}
