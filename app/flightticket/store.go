package flightticket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/gomodule/redigo/redis"

	"github.com/aiopslab/aiopslab/app/flightticket/whisk"
	"github.com/aiopslab/aiopslab/app/service"
)

// store is Redis as actions use it.
type store struct {
	s     *service.Service
	redis *service.Redis
}

// do sends commands in one go, and returns the reply to the last.
func (st *store) do(ctx context.Context, commands ...service.Command) (reply any, err error) {
	ctx, cancel := context.WithTimeout(ctx, service.StoreTimeout)
	defer cancel()
	err = st.s.Store(ctx, "redis", commands[len(commands)-1][0].(string), func(ctx context.Context) (err error) {
		reply, err = st.redis.Do(ctx, commands...)
		return err
	})
	return reply, err
}

// text reads a field of a hash; it is "" if there is none.
func (st *store) text(ctx context.Context, key, field string) (string, error) {
	text, err := redis.String(st.do(ctx, service.Command{"HGET", key, field}))
	if errors.Is(err, redis.ErrNil) {
		return "", nil
	}
	return text, err
}

// datum reads a field of the data set. If it is not there, it may be that the store has lost all it had: it is filled
// again then.
func (st *store) datum(ctx context.Context, key, field string) (string, error) {
	text, err := st.text(ctx, key, field)
	if text != "" || err != nil {
		return text, err
	}
	if wrote, err := st.fill(ctx); err != nil || !wrote {
		return "", err
	}
	return st.text(ctx, key, field)
}

// record reads a record of the data set. There must be one.
func (st *store) record(ctx context.Context, key, field string, into any) error {
	text, err := st.datum(ctx, key, field)
	switch {
	case err != nil:
		return err
	case text == "":
		return whisk.Refusal(fmt.Sprintf("there is no %s in %s", clip(field), key))
	}
	return json.Unmarshal([]byte(text), into)
}

// clip shortens what somebody else has written.
func clip(text string) string { return text[:min(len(text), 40)] }

// fill writes the data set, unless it is there.
func (st *store) fill(ctx context.Context) (wrote bool, err error) {
	there, err := redis.Int(st.do(ctx, service.Command{"EXISTS", filledKey}))
	if err != nil {
		return false, fmt.Errorf("the store cannot be used: %w", err)
	}
	if there > 0 {
		return false, nil
	}
	var commands []service.Command
	set := func(key, field string, v any) error {
		b, err := json.Marshal(v)
		commands = append(commands, service.Command{"HSET", key, field, b})
		return err
	}
	var errs []error
	for id := 1; id <= stations; id++ {
		errs = append(errs, set(stationsKey, stationName(id), id))
	}
	for id := 1; id <= routes; id++ {
		errs = append(errs, set(routesKey, strconv.Itoa(id), routeOf(id)))
		for kind := 1; kind <= types; kind++ {
			errs = append(errs, set(pricesKey, fmt.Sprintf("%d:%d", id, kind), priceOf(id, kind)))
		}
	}
	for id := 1; id <= types; id++ {
		errs = append(errs, set(typesKey, strconv.Itoa(id), aircraftOf(id)))
	}
	for id := 1; id <= trips; id++ {
		errs = append(errs, set(tripsKey, strconv.Itoa(id), tripOf(id)))
	}
	for name, value := range settings {
		commands = append(commands, service.Command{"HSET", configKey, name, value})
	}
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	if _, err := st.do(ctx, append(commands, service.Command{"SET", filledKey, 1})...); err != nil {
		return false, fmt.Errorf("the data set cannot be written: %w", err)
	}
	st.s.Log.Info("Wrote the data set", "trips", trips, "routes", routes, "stations", stations)
	return true, nil
}
