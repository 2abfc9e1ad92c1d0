package flightticket

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/aiopslab/aiopslab/app/flightticket/whisk"
	"github.com/aiopslab/aiopslab/app/service"
)

// answers is what actions return: the result under this name, as in the original.
type answers struct {
	Result any `json:"Result"`
}

// function is one action, in the pod of one.
type function struct {
	*store
	others *whisk.Client
}

// actions are the functions, by name.
var actions = map[string]func(f *function, ctx context.Context, in *whisk.Input) (any, error){
	"query-for-travel":                     (*function).queryForTravel,
	"query-for-station-id-by-station-name": (*function).stationByName,
	"get-route-by-route-id":                (*function).routeByID,
	"get-route-by-trip-id":                 (*function).routeByTrip,
	"get-train-type-by-train-type-id":      (*function).typeByID,
	"get-train-type-by-trip-id":            (*function).typeByTrip,
	"get-price-by-route-id-and-train-type": (*function).priceByRouteAndType,
	"query-config-entity-by-config-name":   (*function).configByName,
	"get-sold-tickets":                     (*function).soldTickets,
	"seat-service":                         (*function).seatService,
	"save-order-info":                      (*function).saveOrderInfo,
	"get-order-by-id":                      (*function).orderByID,
	"drawback":                             (*function).drawback,
	"cancel-service":                       (*function).cancelService,
}

// args are what an action is invoked with, or returns.
type args = map[string]any

// params decodes what an action was invoked with.
func params[T any](in *whisk.Input) (p T, err error) {
	if json.Unmarshal(in.Params, &p) != nil {
		err = whisk.Refusal("the parameters are not of the kinds that are wanted")
	}
	return p, err
}

// invoke has another action run, and decodes its result into v.
func (f *function) invoke(ctx context.Context, action string, params, v any) error {
	return f.others.Invoke(ctx, action, params, &struct{ Result any }{v})
}

type travelParams struct {
	Start string `json:"start"`
	End   string `json:"end"`
	Route int    `json:"rId"`
	Type  int    `json:"trainTypeId"`
}

// queryForTravel tells what it costs to fly a part of a route.
func (f *function) queryForTravel(ctx context.Context, in *whisk.Input) (any, error) {
	p, err := params[travelParams](in)
	if err != nil {
		return nil, err
	}
	var from, to int
	const byName = "query-for-station-id-by-station-name"
	if err := f.invoke(ctx, byName, args{"stationName": p.Start}, &from); err != nil {
		return nil, err
	}
	if err := f.invoke(ctx, byName, args{"stationName": p.End}, &to); err != nil {
		return nil, err
	}
	var kind aircraft
	if err := f.invoke(ctx, "get-train-type-by-train-type-id", args{"trainTypeId": p.Type}, &kind); err != nil {
		return nil, err
	}
	var r route
	if err := f.invoke(ctx, "get-route-by-route-id", args{"rId": p.Route}, &r); err != nil {
		return nil, err
	}
	var rates price
	err = f.invoke(ctx, "get-price-by-route-id-and-train-type", args{"rId": p.Route, "trainTypeId": p.Type},
		&rates)
	if err != nil {
		return nil, err
	}
	i, j := slices.Index(r.Stations, from), slices.Index(r.Stations, to)
	if i < 0 || j < i || j >= len(r.Distances) {
		in.Logf("route %d does not lead from %d to %d", r.ID, from, to)
		return answers{args{"status": false}}, nil
	}
	distance := r.Distances[j] - r.Distances[i]
	in.Logf("%d miles from %d to %d", distance, from, to)
	return answers{args{
		"status": true, "distance": distance, "trainType": kind.ID,
		"prices": map[string]int{"basic": distance * rates.Basic, "first_class": distance * rates.First},
	}}, nil
}

// stationByName tells the ID of an airport; -1 if there is none of that name.
func (f *function) stationByName(ctx context.Context, in *whisk.Input) (any, error) {
	p, err := params[struct{ StationName string }](in)
	if err != nil {
		return nil, err
	}
	text, err := f.datum(ctx, stationsKey, p.StationName)
	if err != nil {
		return nil, err
	}
	id, err := strconv.Atoi(text)
	if err != nil {
		id = -1
		in.Logf("there is no airport %s", clip(p.StationName))
		f.s.Log.WarnContext(ctx, "There is no such airport", "name", p.StationName[:min(len(p.StationName), 200)])
	}
	return answers{id}, nil
}

type idParams struct {
	Route int `json:"rId"`
	Type  int `json:"trainTypeId"`
	Trip  int `json:"tripId"`
}

func (f *function) routeByID(ctx context.Context, in *whisk.Input) (any, error) {
	p, err := params[idParams](in)
	if err != nil {
		return nil, err
	}
	var r route
	return answers{&r}, f.record(ctx, routesKey, strconv.Itoa(p.Route), &r)
}

func (f *function) typeByID(ctx context.Context, in *whisk.Input) (any, error) {
	p, err := params[idParams](in)
	if err != nil {
		return nil, err
	}
	var a aircraft
	return answers{&a}, f.record(ctx, typesKey, strconv.Itoa(p.Type), &a)
}

// routeByTrip finds the route of a trip, and asks for it.
func (f *function) routeByTrip(ctx context.Context, in *whisk.Input) (any, error) {
	t, err := f.trip(ctx, in)
	if err != nil {
		return nil, err
	}
	var r route
	return answers{&r}, f.invoke(ctx, "get-route-by-route-id", args{"rId": t.Route}, &r)
}

// typeByTrip finds the type of aircraft of a trip, and asks for it.
func (f *function) typeByTrip(ctx context.Context, in *whisk.Input) (any, error) {
	t, err := f.trip(ctx, in)
	if err != nil {
		return nil, err
	}
	var a aircraft
	return answers{&a}, f.invoke(ctx, "get-train-type-by-train-type-id", args{"trainTypeId": t.Type}, &a)
}

func (f *function) trip(ctx context.Context, in *whisk.Input) (t trip, err error) {
	p, err := params[idParams](in)
	if err != nil {
		return t, err
	}
	return t, f.record(ctx, tripsKey, strconv.Itoa(p.Trip), &t)
}

func (f *function) priceByRouteAndType(ctx context.Context, in *whisk.Input) (any, error) {
	p, err := params[idParams](in)
	if err != nil {
		return nil, err
	}
	var r price
	return answers{&r}, f.record(ctx, pricesKey, fmt.Sprintf("%d:%d", p.Route, p.Type), &r)
}

func (f *function) configByName(ctx context.Context, in *whisk.Input) (any, error) {
	p, err := params[struct{ ConfigName string }](in)
	if err != nil {
		return nil, err
	}
	text, err := f.datum(ctx, configKey, p.ConfigName)
	if err == nil && text == "" {
		err = whisk.Refusal("there is no setting " + clip(p.ConfigName))
	}
	return answers{text}, err
}

type flightParams struct {
	Trip  int    `json:"tripId"`
	Date  string `json:"date"`
	Class string `json:"seatClass"`
}

func (p flightParams) check() error {
	if _, err := time.Parse(time.DateOnly, p.Date); err != nil {
		return whisk.Refusal("date must be a date such as 2015-04-09")
	}
	return nil
}

// soldTickets lists the seats of a flight that are sold.
func (f *function) soldTickets(ctx context.Context, in *whisk.Input) (any, error) {
	p, err := params[flightParams](in)
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, err
	}
	list, err := redis.StringMap(f.do(ctx, service.Command{"HGETALL", ticketsKey(p.Trip, p.Date)}))
	if err != nil {
		return nil, err
	}
	tickets := []ticket{}
	for seat, order := range list {
		n, _ := strconv.Atoi(seat)
		tickets = append(tickets, ticket{n, order})
	}
	slices.SortFunc(tickets, func(a, b ticket) int { return a.SeatNo - b.SeatNo })
	return answers{tickets}, nil
}

// seatService tells how many seats of a class are left on a flight. Some part of them is for who flies the whole way.
func (f *function) seatService(ctx context.Context, in *whisk.Input) (any, error) {
	p, err := params[flightParams](in)
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, err
	}
	var r route
	if err := f.invoke(ctx, "get-route-by-trip-id", args{"tripId": p.Trip}, &r); err != nil {
		return nil, err
	}
	var sold []ticket
	if err := f.invoke(ctx, "get-sold-tickets", args{"tripId": p.Trip, "date": p.Date}, &sold); err != nil {
		return nil, err
	}
	var kind aircraft
	if err := f.invoke(ctx, "get-train-type-by-trip-id", args{"tripId": p.Trip}, &kind); err != nil {
		return nil, err
	}
	var part string
	err = f.invoke(ctx, "query-config-entity-by-config-name",
		args{"configName": "DirectTicketAllocationProportion"}, &part)
	if err != nil {
		return nil, err
	}
	direct, err := strconv.ParseFloat(part, 64)
	if err != nil || direct < 0 || direct > 1 {
		return nil, fmt.Errorf("DirectTicketAllocationProportion is %q, want a number from 0 to 1", clip(part))
	}
	from, to := kind.seats(p.Class)
	taken := 0
	for _, t := range sold {
		if t.SeatNo >= from && t.SeatNo <= to {
			taken++
		}
	}
	total := to - from + 1
	in.Logf("%d of %d seats of trip %d are sold", taken, total, p.Trip)
	return answers{args{
		"total": total, "sold": taken, "left": total - taken, "direct": int(float64(total) * direct),
		"rId": r.ID, "trainTypeId": kind.ID,
	}}, nil
}

// saveOrderInfo books a seat if the order has no ID, and otherwise changes the status of the order. Result is then 1,
// or 0 if it cannot be changed so. Who pays has the price taken from his account.
func (f *function) saveOrderInfo(ctx context.Context, in *whisk.Input) (any, error) {
	p, err := params[struct{ Order order }](in)
	if err != nil {
		return nil, err
	}
	o := p.Order
	if o.ID == "" {
		if err := o.check(); err != nil {
			return nil, err
		}
		if err := f.book(ctx, &o); err != nil {
			return nil, err
		}
		logBooked(f.s.Log, time.Now(), o)
		return answers{&o}, nil
	}
	was, ok, err := f.find(ctx, o.ID)
	if err != nil || !ok {
		return answers{0}, err
	}
	changed, err := f.change(ctx, was, o.Status)
	if err != nil || !changed {
		return answers{0}, err
	}
	if o.Status == paid {
		var balance int
		err := f.invoke(ctx, "drawback", args{"money": -was.Price, "loginId": was.AccountID}, &balance)
		if err != nil {
			return nil, err
		}
	}
	return answers{1}, nil
}

// orderByID tells of an order; Result is null if there is none.
func (f *function) orderByID(ctx context.Context, in *whisk.Input) (any, error) {
	p, err := params[struct{ OrderID string }](in)
	if err != nil {
		return nil, err
	}
	o, ok, err := f.find(ctx, p.OrderID)
	if err != nil {
		return nil, err
	}
	if !ok {
		return answers{nil}, nil
	}
	return answers{&o}, nil
}

// drawback puts money on an account, or takes it away, and tells what is there then.
func (f *function) drawback(ctx context.Context, in *whisk.Input) (any, error) {
	p, err := params[struct {
		Money   int
		LoginID string
	}](in)
	if err != nil {
		return nil, err
	}
	if p.LoginID == "" || len(p.LoginID) > maxAccount {
		return nil, whisk.Refusal("want a loginId")
	}
	if p.Money == 0 { // Nothing to write.
		text, err := f.text(ctx, moneyKey, p.LoginID)
		balance, _ := strconv.Atoi(text)
		return answers{balance}, err
	}
	balance, err := redis.Int(f.do(ctx, service.Command{"HINCRBY", moneyKey, p.LoginID, p.Money}))
	return answers{balance}, err
}

// refundPercent is how much of the price of a paid order is given back.
const refundPercent = 80

// cancelService cancels an order, and gives back most of what was paid for it.
func (f *function) cancelService(ctx context.Context, in *whisk.Input) (any, error) {
	p, err := params[struct{ OrderID, LoginID string }](in)
	if err != nil {
		return nil, err
	}
	var o *order
	if err := f.invoke(ctx, "get-order-by-id", args{"orderId": p.OrderID}, &o); err != nil {
		return nil, err
	}
	if o == nil || o.AccountID != p.LoginID {
		return map[string]string{"Order": "Not Found"}, nil
	}
	var done int
	err = f.invoke(ctx, "save-order-info", args{"order": args{"id": o.ID, "stat": cancelled}}, &done)
	if err != nil {
		return nil, err
	}
	if done == 0 {
		return map[string]string{"Order": "Not permitted operation"}, nil
	}
	refund := 0
	if o.Status == paid || o.Status == collected {
		refund = o.Price * refundPercent / 100
	}
	var balance int
	if err := f.invoke(ctx, "drawback", args{"money": refund, "loginId": o.AccountID}, &balance); err != nil {
		return nil, err
	}
	in.Logf("refunded %d to %s", refund, clip(o.AccountID))
	return args{"Order": "Success", "refund": refund, "balance": balance}, nil
}
