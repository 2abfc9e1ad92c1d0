package hotel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

// config is config.json in the working directory, if there is one: where everything is.
type config map[string]string

const defaultConfig = `{
  "consulAddress": "consul:8500",
  "FrontendPort": "5000",
  "GeoPort": "8083",
  "GeoMongoAddress": "mongodb-geo:27017",
  "ProfilePort": "8081",
  "ProfileMongoAddress": "mongodb-profile:27017",
  "ProfileMemcAddress": "memcached-profile:11211",
  "RatePort": "8084",
  "RateMongoAddress": "mongodb-rate:27017",
  "RateMemcAddress": "memcached-rate:11211",
  "RecommendPort": "8085",
  "RecommendMongoAddress": "mongodb-recommendation:27017",
  "ReservePort": "8087",
  "ReserveMongoAddress": "mongodb-reservation:27017",
  "ReserveMemcAddress": "memcached-reserve:11211",
  "SearchPort": "8082",
  "UserPort": "8086",
  "UserMongoAddress": "mongodb-user:27017"
}
`

// start begins a service: its telemetry and its configuration. Name is what traces call it.
func start(ctx context.Context, env *kit.Env, name string) (*service.Service, config, error) {
	s, err := service.New(ctx, env, service.Config{Name: name})
	if err != nil {
		return nil, nil, err
	}
	s.Log.Info("Reading config...")
	var c config
	b, err := env.ReadFile("config.json")
	if errors.Is(err, fs.ErrNotExist) {
		b, err = []byte(defaultConfig), nil
	}
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		defer s.Close()
		return nil, nil, s.Fatal(ctx, "Got error while reading config", err)
	}
	return s, c, nil
}

// address is where a service listens.
func (c config) address(port string) string { return fmt.Sprintf(":%s", c[port]) }
