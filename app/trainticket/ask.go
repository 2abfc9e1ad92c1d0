package trainticket

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/aiopslab/aiopslab/app/ask"
)

// questions are what only the services can answer: with what the data they start with says.
var questions = map[string]ask.Question{
	// The gateway lets nobody book who has not logged in.
	"ts-gateway-service": ask.All(
		has("/api/v1/stationservice/stations/id/Su%20Zhou", `"suzhou"`),
		ask.Post("/api/v1/preserveservice/preserve", "{}", says(http.StatusUnauthorized, "log in first")),
	),
	"ts-auth-service": ask.All(
		ask.Post("/api/v1/users/login", `{"username": "fdse_microservice", "password": "111111"}`,
			says(http.StatusOK, "4d2a46c7-71cb-4cf1-b5bb-b68406d9da6f")),
		ask.Post("/api/v1/users/login", `{"username": "fdse_microservice", "password": "wrong"}`,
			says(http.StatusUnauthorized, "Incorrect username or password.")),
		// The gateway does not send this on.
		ask.Post("/api/v1/auth", "{}", says(http.StatusBadRequest, "want a userId")),
	),
	"ts-user-service": has("/api/v1/userservice/users/id/4d2a46c7-71cb-4cf1-b5bb-b68406d9da6f", `"fdse_microservice"`),
	"ts-station-service": ask.Post("/api/v1/stationservice/stations/idlist", `["Su Zhou"]`,
		says(http.StatusOK, `{"Su Zhou":"suzhou"}`)),
	"ts-train-service": has("/api/v1/trainservice/trains/GaoTieTwo", `"averageSpeed":200`),
	"ts-route-service": has("/api/v1/routeservice/routes/suzhou/shanghai", routes[3].ID),
	"ts-price-service": has("/api/v1/priceservice/prices/"+routes[3].ID+"/GaoTieTwo", `"basicPriceRate":0.6`),
	"ts-travel-service": ask.Post("/api/v1/travelservice/trip_detail",
		`{"tripId": "G1237", "startingPlace": "Su Zhou", "endPlace": "Shang Hai", "departureTime": "2014-05-04"}`,
		says(http.StatusOK, `"priceForEconomyClass":"30.00"`)),
	"ts-seat-service": ask.Post("/api/v1/seatservice/seats/left_tickets",
		`{"trainNumber": "none", "travelDate": "2014-05-04", "totalEconomyClass": 7, "totalConfortClass": 5}`,
		says(http.StatusOK, `{"economyClass":7,"confortClass":5}`)),
	"ts-order-service": has("/api/v1/orderservice/order/tickets/none/2014-05-04",
		`{"economyClass":[],"confortClass":[]}`),
	// To ask more of these would be to book or to pay something.
	"ts-preserve-service": ask.Post("/api/v1/preserveservice/preserve", `{"accountId": "nobody"}`,
		says(http.StatusForbidden, `account \"nobody\" is not yours`)),
	"ts-cancel-service": ask.Page("/api/v1/cancelservice/cancel/none/nobody",
		says(http.StatusForbidden, `account \"nobody\" is not yours`)),
	"ts-inside-payment-service": ask.Page("/api/v1/inside_pay_service/inside_payment/account/nobody",
		says(http.StatusForbidden, `account \"nobody\" is not yours`)),
	"ts-payment-service": ask.Page("/api/v1/paymentservice/payment/none",
		says(http.StatusNotFound, "there is no payment for order none")),
	"ts-notification-service": ask.Page("/api/v1/notifyservice/notification/order/none",
		says(http.StatusNotFound, `there is no mail about order`)),
	"rabbitmq": ask.Queue("train:ticket", emailQueue, true),
	"jaeger":   ask.Jaeger("ts-gateway-service"),
}

// has is a question for a page with a text in it.
func has(path, text string) ask.Question { return ask.Page(path, says(http.StatusOK, text)) }

// says wants an answer of the services' form, with a text in it.
func says(status int, text string) func(int, []byte) error {
	return func(got int, body []byte) error {
		var r response[json.RawMessage]
		if got != status || json.Unmarshal(body, &r) != nil || r.Status == 1 != (status == http.StatusOK) ||
			!strings.Contains(string(body), text) {
			return ask.Wrong("%d %s", got, body)
		}
		return nil
	}
}
