package rabbitmq

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/kit/past"
)

// managementPort is where the API of the plugin rabbitmq_management is.
const managementPort = "15672"

// management serves what the plugin tells of the node, to users who may ask: those with a tag of it.
func (b *broker) management() http.Handler {
	mux := http.NewServeMux()
	for path, tell := range map[string]func() any{
		"overview": b.overview, "queues": b.queueList, "exchanges": b.exchangeList, "connections": b.connectionList,
	} {
		mux.HandleFunc("GET /api/"+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			name, password, _ := r.BasicAuth()
			told, ok := b.tell(b.authenticate(name, password), tell)
			if !ok {
				w.Header().Set("WWW-Authenticate", `Basic realm="RabbitMQ Management"`)
				w.WriteHeader(http.StatusUnauthorized)
				told = object{"error": "not_authorized", "reason": "Login failed"}
			}
			_ = json.NewEncoder(w).Encode(told)
		})
	}
	return mux
}

// tell has the node tell something to a user who may know it.
func (b *broker) tell(u *user, what func() any) (told any, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if u == nil || !slices.ContainsFunc(u.tags, managing) {
		return nil, false
	}
	return what(), true
}

// managing reports whether a tag lets its user use the API.
func managing(tag string) bool {
	return slices.Contains([]string{"administrator", "monitoring", "management", "policymaker"}, tag)
}

// object is one of JSON.
type object = map[string]any

func (b *broker) overview() any {
	channels, ready, unacked := 0, 0, 0
	for c := range b.conns {
		channels += len(c.channels)
	}
	for _, q := range b.queues {
		ready, unacked = ready+q.len(), unacked+q.unacked
	}
	c := &b.counts
	count := func(n past.Number) uint64 { return uint64(n) }
	return object{
		"management_version": Version, "rabbitmq_version": Version, "product_name": "RabbitMQ",
		"node": b.settings.node, "cluster_name": b.settings.node,
		"object_totals": object{
			"connections": len(b.conns), "channels": channels, "exchanges": len(b.exchanges), "queues": len(b.queues),
			"consumers": b.consumers,
		},
		"queue_totals": object{
			"messages": ready + unacked, "messages_ready": ready, "messages_unacknowledged": unacked,
		},
		"message_stats": object{
			"publish": count(c.published), "confirm": count(c.confirmed), "ack": count(c.acknowledged),
			"deliver_get": count(c.delivered) + count(c.got), "redeliver": count(c.redelivered),
			"return_unroutable": count(c.returned),
		},
	}
}

func (b *broker) queueList() any {
	list := []object{}
	for _, name := range named(b.queues) {
		q := b.queues[name]
		list = append(list, object{
			"name": name, "vhost": b.settings.vhost, "durable": q.durable, "auto_delete": q.autoDelete,
			"exclusive": q.owner != nil, "messages": q.len() + q.unacked, "messages_ready": q.len(),
			"messages_unacknowledged": q.unacked, "consumers": len(q.consumers), "node": b.settings.node,
			"state": "running",
		})
	}
	return list
}

func (b *broker) exchangeList() any {
	list := []object{}
	for _, name := range named(b.exchanges) {
		e := b.exchanges[name]
		list = append(list, object{
			"name": name, "vhost": b.settings.vhost, "type": e.kind, "durable": e.durable,
			"auto_delete": e.autoDelete, "internal": e.internal,
		})
	}
	return list
}

func (b *broker) connectionList() any {
	list := []object{}
	for c := range b.conns {
		one := object{"vhost": b.settings.vhost, "channels": len(c.channels), "name": c.name, "node": b.settings.node}
		if c.user != nil {
			one["user"] = c.user.name
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b object) int { return strings.Compare(a["name"].(string), b["name"].(string)) })
	return list
}
