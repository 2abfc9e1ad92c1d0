package flightticket

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/aiopslab/aiopslab/app/ask"
)

// knowsActions asks the controller which actions there are.
var knowsActions = ask.Page("/api/v1/namespaces/_/actions", func(status int, body []byte) error {
	for _, name := range []string{"query-for-travel", "cancel-service"} {
		if status != http.StatusOK || !bytes.Contains(body, []byte(`"name":"`+name+`"`)) {
			return ask.Wrong("%d %s", status, body)
		}
	}
	return nil
})

// traces asks Jaeger.
var traces = ask.Jaeger("owdev-controller")

// nobody is an account, and no order, that there is none of.
const nobody = `"nobody-of-this-name"`

// questions are what only one function can answer. They are asked through the controller, and change nothing.
var questions = map[string]ask.Question{
	"query-for-travel": invoke("query-for-travel", `{"start": "AP02", "end": "AP22", "rId": 2, "trainTypeId": 1}`,
		`{"Result": {"status": true, "distance": 530, "trainType": 1,
			"prices": {"basic": 6360, "first_class": 19080}}}`),
	"query-for-station-id-by-station-name": invoke("query-for-station-id-by-station-name", `{"stationName": "AP17"}`,
		`{"Result": 17}`),
	"get-route-by-route-id": invoke("get-route-by-route-id", `{"rId": 2}`,
		`{"Result": {"id": 2, "stations": [2, 12, 22], "distances": [0, 274, 530]}}`),
	"get-route-by-trip-id": invoke("get-route-by-trip-id", `{"tripId": 2}`,
		`{"Result": {"id": 5, "stations": [5, 15, 25], "distances": [0, 385, 800]}}`),
	"get-train-type-by-train-type-id": invoke("get-train-type-by-train-type-id", `{"trainTypeId": 2}`,
		`{"Result": {"id": 2, "economyClass": 160, "comfortClass": 28, "averageSpeed": 460}}`),
	"get-train-type-by-trip-id": invoke("get-train-type-by-trip-id", `{"tripId": 2}`,
		`{"Result": {"id": 3, "economyClass": 180, "comfortClass": 32, "averageSpeed": 490}}`),
	"get-price-by-route-id-and-train-type": invoke("get-price-by-route-id-and-train-type",
		`{"rId": 2, "trainTypeId": 1}`, `{"Result": {"basic_rate": 12, "first_class_rate": 36}}`),
	"query-config-entity-by-config-name": invoke("query-config-entity-by-config-name",
		`{"configName": "DirectTicketAllocationProportion"}`, `{"Result": "0.5"}`),
	"get-sold-tickets": invoke("get-sold-tickets", `{"tripId": 60, "date": "2014-12-31"}`, `{"Result": []}`),
	"seat-service": invoke("seat-service", `{"tripId": 60, "date": "2014-12-31", "seatClass": "FIRST"}`,
		`{"Result": {"total": 24, "sold": 0, "left": 24, "direct": 12, "rId": 1, "trainTypeId": 1}}`),
	"save-order-info": invoke("save-order-info", `{"order": {"id": `+nobody+`, "stat": 3}}`, `{"Result": 0}`),
	"get-order-by-id": invoke("get-order-by-id", `{"orderId": `+nobody+`}`, `{"Result": null}`),
	"drawback":        invoke("drawback", `{"money": 0, "loginId": `+nobody+`}`, `{"Result": 0}`),
	"cancel-service": invoke("cancel-service", `{"orderId": `+nobody+`, "loginId": `+nobody+`}`,
		`{"Order": "Not Found"}`),
}

// invoke is the question what a function returns.
func invoke(action, params, result string) ask.Question {
	var want any
	if err := json.Unmarshal([]byte(result), &want); err != nil {
		panic(err)
	}
	return ask.Post("/api/v1/namespaces/_/actions/"+action+"?blocking=true&result=true", params,
		func(status int, body []byte) error {
			var got any
			if status != http.StatusOK || json.Unmarshal(body, &got) != nil || !reflect.DeepEqual(got, want) {
				return ask.Wrong("%d %s", status, body)
			}
			return nil
		})
}
