package flightticket

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/app/flightticket/whisk"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/image/redis"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
	"github.com/aiopslab/aiopslab/kit/past"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is FlightTicket on machines in memory: one pod for each function, and an API server that never changes.
type shop struct {
	t    *testing.T
	user *kittest.Machine
	http *http.Client
}

func open(t *testing.T) *shop {
	t.Helper()
	w := kittest.New(t)
	begin := func(name, address, listens string, p kit.Program, args ...string) {
		m := w.Machine(name, address)
		run := m.Start(p, args...)
		t.Cleanup(func() { run.Signal(syscall.SIGKILL); run.Wait() })
		m.WaitListen(listens)
	}
	begin("redis", "10.244.0.2", ":6379", redis.Main, "redis-server", "--save", "")
	api := fake.NewClientset()
	for i, name := range functions {
		address := fmt.Sprintf("10.244.1.%d", i+1)
		begin(name, address, ":8080", actionMain, "flight-action", name)
		labels := map[string]string{whisk.Label: name}
		_, err := api.AppsV1().Deployments("ns").Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: labels},
			Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = api.CoreV1().Pods("ns").Create(t.Context(), &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-0", Namespace: "ns", Labels: labels, UID: ktypes.UID(name)},
			Status: v1.PodStatus{
				PodIP: address, Phase: v1.PodRunning,
				Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	begin("owdev-controller", "10.244.0.1", ":"+whisk.Port, func(ctx context.Context, env *kit.Env) error {
		s, err := service.New(ctx, env, service.Config{Name: "owdev-controller"})
		if err != nil {
			return err
		}
		defer s.Close()
		return whisk.Run(ctx, s, api, "ns")
	}, "whisk-controller")
	user := w.Machine("user", "10.244.9.9")
	return &shop{t, user, user.Client()}
}

// invoke has a function run, and decodes its result.
func (s *shop) invoke(action string, params, result any) int {
	s.t.Helper()
	b, err := json.Marshal(params)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.http.Post("http://owdev-controller:"+whisk.Port+"/api/v1/namespaces/_/actions/"+action+"?blocking=true&result=true",
		"application/json", bytes.NewReader(b))
	if err != nil {
		s.t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || result != nil && json.Unmarshal(body, result) != nil {
		s.t.Errorf("%s: %d %s: %v", action, resp.StatusCode, body, err)
	}
	return resp.StatusCode
}

type record = map[string]any

// Each function answers the question that is for it, and no other one's.
func TestQuestions(t *testing.T) {
	s := open(t)
	dial := s.user.Env("ask").Net.DialContext
	for _, service := range App().Services {
		if !service.Elastic {
			continue
		}
		if err := service.Ask(t.Context(), dial, "owdev-controller:3233"); err != nil {
			t.Errorf("%s: %v", service.Name, err)
		}
	}
	if err := knowsActions(t.Context(), dial, "owdev-controller:3233"); err != nil {
		t.Error(err)
	}
	if len(functions) != 14 || len(actions) != 14 || len(questions) != 14 {
		t.Errorf("%d, %d, %d functions", len(functions), len(actions), len(questions))
	}
}

// However many book at the same time, no seat is sold twice, and one that was given back is sold again.
func TestSeats(t *testing.T) {
	s := open(t)
	const n = 40
	var wg sync.WaitGroup
	var mu sync.Mutex
	seats, orders := map[int]string{}, []order{}
	for i := range n {
		wg.Go(func() {
			var r struct{ Result order }
			code := s.invoke("save-order-info", record{"order": record{
				"accountId": fmt.Sprintf("me-%d", i), "tripId": 4, "travelDate": "2015-04-09", "seatClass": first,
			}}, &r)
			mu.Lock()
			defer mu.Unlock()
			if code == http.StatusOK {
				if other := seats[r.Result.SeatNo]; other != "" {
					t.Errorf("%s and %s have seat %d", other, r.Result.ID, r.Result.SeatNo)
				}
				seats[r.Result.SeatNo] = r.Result.ID
				orders = append(orders, r.Result)
			}
		})
	}
	wg.Wait()
	if len(orders) != aircraftOf(1).ComfortClass {
		t.Fatalf("%d seats were sold", len(orders))
	}
	mine := orders[0]
	var paid struct{ Result int }
	if s.invoke("save-order-info", record{"order": record{"id": mine.ID, "stat": 1}}, &paid); paid.Result != 1 {
		t.Errorf("%+v", paid)
	}
	cancel := record{"orderId": mine.ID, "loginId": mine.AccountID}
	var done struct {
		Order           string
		Refund, Balance int
	}
	s.invoke("cancel-service", cancel, &done)
	if done.Order != "Success" || done.Refund != mine.Price*80/100 || done.Balance != done.Refund-mine.Price {
		t.Errorf("%+v of %+v", done, mine)
	}
	if s.invoke("cancel-service", cancel, &done); done.Order != "Not permitted operation" {
		t.Errorf("it was cancelled twice: %+v", done)
	}
	if s.invoke("cancel-service", record{"orderId": orders[1].ID, "loginId": "somebody"}, &done); done.Order != "Not Found" {
		t.Errorf("somebody else cancelled: %+v", done)
	}
	var again struct{ Result order }
	s.invoke("save-order-info", record{"order": record{
		"accountId": "late", "tripId": 4, "travelDate": "2015-04-09", "seatClass": first,
	}}, &again)
	if again.Result.SeatNo != mine.SeatNo {
		t.Errorf("got seat %d, %d was given back", again.Result.SeatNo, mine.SeatNo)
	}
}

// What makes no sense is refused, and does not break anything.
func TestNonsense(t *testing.T) {
	s := open(t)
	for action, params := range map[string]any{
		"query-for-travel":                   record{"start": "AP01", "end": "AP02", "rId": 99},
		"query-config-entity-by-config-name": record{"configName": "x"},
		"seat-service":                       record{"tripId": 1, "date": "tomorrow"},
		"get-sold-tickets":                   record{"tripId": "one"},
		"drawback":                           record{"money": 1},
		"save-order-info":                    record{"order": record{"tripId": -1, "travelDate": "2015-04-09"}},
	} {
		var r struct{ Error string }
		if code := s.invoke(action, params, &r); code != http.StatusBadGateway || r.Error == "" {
			t.Errorf("%s: %d %+v", action, code, r)
		}
	}
	var r struct{ Result record }
	s.invoke("query-for-travel", record{"start": "AP01", "end": "Atlantis", "rId": 1, "trainTypeId": 1}, &r)
	if r.Result["status"] != false {
		t.Errorf("%+v", r)
	}
}

// A store that has lost everything gets the data set again.
func TestLostData(t *testing.T) {
	s := open(t)
	dial := s.user.Env("ask").Net.DialContext
	q := questions["query-for-travel"]
	if err := q(t.Context(), dial, "owdev-controller:3233"); err != nil {
		t.Fatal(err)
	}
	conn, err := dial(t.Context(), "tcp", "redis:6379")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "FLUSHALL\r\n")
	if _, err := conn.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if err := q(t.Context(), dial, "owdev-controller:3233"); err != nil {
		t.Error(err)
	}
}

// Orders of the past have seats of their own, and are told as those of the present are.
func TestOrdersBefore(t *testing.T) {
	now := time.Now()
	p := past.New(7, now, now, past.Cast{})
	list := ordersBefore(p, rand.New(rand.NewPCG(7, 1)))
	if len(list) < 100 {
		t.Fatalf("%d orders", len(list))
	}
	taken := map[string]bool{}
	for _, o := range list {
		seat := fmt.Sprint(ticketsKey(o.Trip, o.TravelDate), o.SeatNo)
		if taken[seat] || o.check() != nil {
			t.Errorf("%+v", o)
		}
		taken[seat] = true
	}
	if line := bookedLine(now, list[0]); !strings.Contains(line, "INF flightticket/orders.go:") || !strings.Contains(line, list[0].ID) {
		t.Errorf("%s", line)
	}
}
