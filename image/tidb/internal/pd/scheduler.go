package pd

import (
	"net/http"
	"strconv"
	"strings"
)

// evictor is the one scheduler that can be added: it takes the leaders from a store.
const evictor = "evict-leader-scheduler"

// schedulers serves what PD does with leaders when somebody asks for it.
func (p *server) schedulers(mux *http.ServeMux) {
	s := p.state
	mux.HandleFunc("GET /pd/api/v1/schedulers", func(w http.ResponseWriter, _ *http.Request) {
		list := []string{}
		for _, id := range s.evictions() {
			list = append(list, evictor+"-"+strconv.FormatUint(id, 10))
		}
		write(w, list)
	})
	mux.HandleFunc("POST /pd/api/v1/schedulers", func(w http.ResponseWriter, r *http.Request) {
		var order struct {
			Name  string `json:"name"`
			Store uint64 `json:"store_id"`
		}
		if !read(w, r, &order) {
			return
		}
		if order.Name != evictor {
			http.Error(w, "unknown scheduler: there is only "+evictor, http.StatusBadRequest)
			return
		}
		if !s.evict(order.Store, true) {
			http.Error(w, "store "+strconv.FormatUint(order.Store, 10)+" not found", http.StatusNotFound)
			return
		}
		p.log.Info("evict leaders of a store", "store-id", order.Store)
		write(w, "The scheduler is created.")
	})
	mux.HandleFunc("DELETE /pd/api/v1/schedulers/{name}", func(w http.ResponseWriter, r *http.Request) {
		text, ok := strings.CutPrefix(r.PathValue("name"), evictor+"-")
		id, err := strconv.ParseUint(text, 10, 64)
		if !ok || err != nil || !s.evict(id, false) {
			http.Error(w, "scheduler not found", http.StatusNotFound)
			return
		}
		p.log.Info("a store may have leaders again", "store-id", id)
		write(w, "The scheduler is removed.")
	})
}
