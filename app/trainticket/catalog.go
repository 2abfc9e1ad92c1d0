package trainticket

import (
	"context"
	"errors"
	"net/http"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/aiopslab/aiopslab/app/service"
)

// documents are the seed of a collection.
func documents[T any](name string, list []T) func() map[string][]any {
	return func() map[string][]any { return map[string][]any{name: service.Documents(list)} }
}

// empty is the seed of a store that has nothing at first.
func empty(collection string) func() map[string][]any {
	return func() map[string][]any { return map[string][]any{collection: nil} }
}

// findOne reads a document. One that is not there is refused, with what was looked for.
func findOne[T any](ctx context.Context, s *server, collection string, filter bson.M, what string) (doc T, err error) {
	err = s.Store(ctx, "mongodb", "findOne "+collection, func(ctx context.Context) error {
		return s.db.Collection(collection).FindOne(ctx, filter).Decode(&doc)
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		return doc, refuse(http.StatusNotFound, "there is no %s", what)
	}
	return doc, err
}

// all serves all documents of a collection.
func all[T any](s *server, pattern, name, collection string) {
	handle(s, pattern, name, func(r *http.Request, _ struct{}) ([]T, error) {
		return service.FindAll[T](r.Context(), s.Service, s.db.Collection(collection), bson.M{})
	})
}

// stationPart knows the stations.
var stationPart = part{"ts-station-service", "ts", documents("station", stations), serveStation}

func serveStation(_ context.Context, s *server) error {
	const base = "/api/v1/stationservice/stations"
	all[station](s, "GET "+base, base, "station")
	handle(s, "GET "+base+"/id/{name}", base+"/id", func(r *http.Request, _ struct{}) (string, error) {
		name := r.PathValue("name")
		doc, err := findOne[station](r.Context(), s, "station", bson.M{"name": name}, "station "+name)
		return doc.ID, err
	})
	// Several names at once, so that a search asks once.
	handle(s, "POST "+base+"/idlist", base+"/idlist", func(r *http.Request, names []string) (map[string]string, error) {
		docs, err := service.FindAll[station](r.Context(), s.Service, s.db.Collection("station"),
			bson.M{"name": bson.M{"$in": names}})
		ids := map[string]string{}
		for _, d := range docs {
			ids[d.Name] = d.ID
		}
		for _, name := range names {
			if ids[name] == "" && err == nil {
				return nil, refuse(http.StatusNotFound, "there is no station %s", name)
			}
		}
		return ids, err
	})
	return nil
}

// trainPart knows the kinds of trains.
var trainPart = part{"ts-train-service", "ts", documents("trainType", trains), serveTrain}

func serveTrain(_ context.Context, s *server) error {
	const base = "/api/v1/trainservice/trains"
	all[trainType](s, "GET "+base, base, "trainType")
	handle(s, "GET "+base+"/{id}", base+"/id", func(r *http.Request, _ struct{}) (trainType, error) {
		id := r.PathValue("id")
		return findOne[trainType](r.Context(), s, "trainType", bson.M{"_id": id}, "train type "+id)
	})
	return nil
}

// routePart knows where trains go.
var routePart = part{"ts-route-service", "ts", documents("routes", routes), serveRoute}

func serveRoute(_ context.Context, s *server) error {
	const base = "/api/v1/routeservice/routes"
	all[route](s, "GET "+base, base, "routes")
	handle(s, "GET "+base+"/{id}", base+"/id", func(r *http.Request, _ struct{}) (route, error) {
		id := r.PathValue("id")
		return findOne[route](r.Context(), s, "routes", bson.M{"_id": id}, "route "+id)
	})
	// Those that lead from one station to another.
	handle(s, "GET "+base+"/{from}/{to}", base+"/from/to", func(r *http.Request, _ struct{}) ([]route, error) {
		from, to := r.PathValue("from"), r.PathValue("to")
		docs, err := service.FindAll[route](r.Context(), s.Service, s.db.Collection("routes"), bson.M{"stations": from})
		found := []route{}
		for _, d := range docs {
			if _, ok := d.distance(from, to); ok {
				found = append(found, d)
			}
		}
		return found, err
	})
	return nil
}

// pricePart knows what a kilometre costs.
var pricePart = part{"ts-price-service", "ts", documents("price_config", prices), servePrice}

func servePrice(_ context.Context, s *server) error {
	const base = "/api/v1/priceservice/prices"
	all[priceConfig](s, "GET "+base, base, "price_config")
	const one = base + "/{route}/{train}"
	handle(s, "GET "+one, base+"/route/train", func(r *http.Request, _ struct{}) (priceConfig, error) {
		route, train := r.PathValue("route"), r.PathValue("train")
		return findOne[priceConfig](r.Context(), s, "price_config", bson.M{"routeId": route, "trainType": train},
			"price of "+train+" on route "+route)
	})
	return nil
}
