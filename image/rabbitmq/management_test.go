package rabbitmq

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The exporter tells of a node what its management API does, and that it is gone.
func TestExporter(t *testing.T) {
	w := start(t)
	w.stop()
	env := w.server.Env("rabbitmq-server")
	env.Vars["RABBITMQ_DEFAULT_USER"], env.Vars["RABBITMQ_DEFAULT_PASS"] = "train", "secret"
	w.run = w.server.Run(Managed, env)
	w.server.WaitListen(":5672")
	ex := w.server.Env("rabbitmq_exporter")
	ex.Vars["RABBIT_USER"], ex.Vars["RABBIT_PASSWORD"] = "train", "secret"
	w.server.Run(Exporter, ex)
	w.server.WaitListen(":" + exporterPort)

	_, ch := w.connect()
	if _, err := ch.QueueDeclare("shipping-task", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := ch.Publish("", "shipping-task", false, false, amqp.Publishing{Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok, err := ch.Get("shipping-task", false); !ok || err != nil {
		t.Fatal(ok, err)
	}
	get := func(url, user string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth(user, "secret")
		resp, err := w.user.Client().Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	_, page := get("http://rabbitmq:9090/metrics", "")
	for _, line := range []string{
		"rabbitmq_up 1\n", "rabbitmq_queues 1\n", "rabbitmq_queue_messages_ready_total 2\n",
		`rabbitmq_queue_messages{durable="false",queue="shipping-task",vhost="/"} 3` + "\n",
		`rabbitmq_queue_messages_unacknowledged{durable="false",queue="shipping-task",vhost="/"} 1` + "\n",
	} {
		if !strings.Contains(page, line) {
			t.Errorf("no line %q in\n%s", line, page)
		}
	}
	for _, path := range []string{"overview", "queues", "exchanges", "connections"} {
		code, body := get("http://rabbitmq:15672/api/"+path, "train")
		if code != http.StatusOK || !strings.Contains(body, "rabbit") && !strings.Contains(body, "amq.") {
			t.Errorf("%s: %d %s", path, code, body)
		}
		if code, _ := get("http://rabbitmq:15672/api/"+path, "nobody"); code != http.StatusUnauthorized {
			t.Errorf("%s to a stranger: %d", path, code)
		}
	}
	w.stop()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		_, page := get("http://rabbitmq:9090/metrics", "")
		if strings.Contains(page, "rabbitmq_up 0\n") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the node is gone, and the exporter says\n%s", page)
		}
	}
}
