package workload

import (
	"io/fs"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/app/everytest"
)

// mixes are the names of the mixes that the applications bring.
func mixes(t testing.TB) (names []string) {
	t.Helper()
	for _, a := range everytest.Apps() {
		files, err := fs.Glob(a.Mixes, "*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			names = append(names, strings.TrimSuffix(f, ".yaml"))
		}
	}
	return names
}

// MixOf is a mix of one of the applications.
func MixOf(t testing.TB, name string) *Mix {
	t.Helper()
	for _, a := range everytest.Apps() {
		if m, err := FindMix(a.Mixes, name); err == nil {
			return m
		}
	}
	t.Fatalf("no application has a mix %s", name)
	return nil
}

// Every mix of the applications has the parts it says, and every request of it is well-formed.
func TestApplicationsMixes(t *testing.T) {
	const n = 20_000
	parts := map[string]map[string]float64{
		"astronomy-mixed": {
			"home": 0.08, "browse": 0.26, "recommend": 0.11, "advertise": 0.14, "reviews": 0.06, "assistant": 0.03, "cart": 0.14,
			"currencies": 0.04, "shipping": 0.08, "buy": 0.06,
		},
		"bank":                {"transfer": 0.3, "statement": 0.3, "account": 0.3, "audit": 0.1},
		"flight-mixed":        {"search": 0.55, "seats": 0.25, "order": 0.1, "book": 0.095, "cancel": 0.005},
		"flower-mixed":        {"predict": 0.75, "train": 0.1, "runs": 0.1, "nodes": 0.05},
		"hotel-booking":       {"search": 0.4, "recommend": 0.2, "user": 0.2, "reserve": 0.2},
		"hotel-mixed":         {"search": 0.6, "recommend": 0.39, "user": 0.005, "reserve": 0.005},
		"social-compose-post": {"compose-post": 50. / 51, "login": 1. / 51},
		"social-mixed":        {"read-home-timeline": 60. / 102, "read-user-timeline": 30. / 102, "compose-post": 10. / 102, "login": 2. / 102},
		"sock-catalogue":      {"catalogue": 1},
		"sock-mixed": {
			"browse": 0.4, "look": 0.2, "pages": 0.1, "fill-cart": 0.12, "sign-in": 0.06, "buy": 0.1, "too-dear": 0.02,
		},
		"sock-pages": {"catalogue": 1},
		"train-mixed": {
			"find-trips": 0.5, "timetable": 0.08, "sign-in": 0.1, "book-seat": 0.18, "cancel-order": 0.08, "join": 0.06,
		},
	}
	if got := mixes(t); len(got) != len(parts) {
		t.Errorf("mixes %v", got)
	}
	for mix, want := range parts {
		counts := map[string]int{}
		size := n
		if mix == "social-compose-post" {
			size = 2000
		}
		for _, p := range plan(t, mix, 3, size) {
			counts[p.Operation]++
			if _, err := url.ParseRequestURI(p.Path); err != nil {
				t.Fatal(err)
			}
		}
		for op, part := range want {
			sigma := math.Sqrt(float64(size) * part * (1 - part))
			if math.Abs(float64(counts[op])-part*float64(size)) > 4*sigma {
				t.Errorf("%s: %d of %d are %s, want a part of %g", mix, counts[op], size, op, part)
			}
		}
		if len(counts) != len(want) {
			t.Errorf("%s: %v", mix, counts)
		}
	}
}

var signIn = regexp.MustCompile(`^(POST /api/v1/users/login {"username": "passenger_\d{1,3}", "password": "\d{6,18}"}|GET /login )$`)

// visitor is one who registers with Sock Shop.
const visitor = `POST /register {"username": "visitor_[a-zA-Z0-9]{16}", "password": "[a-zA-Z0-9]{12}", "email": "visitor_[a-zA-Z0-9]{16}@example.com", "firstName": "A", "lastName": "Visitor"}`

var forms = map[string]*regexp.Regexp{
	"transfer":           regexp.MustCompile(`^POST /transfers from=\d{1,3}&to=\d{1,3}&cents=\d{1,2}&note=[a-zA-Z0-9]{24}$`),
	"statement":          regexp.MustCompile(`^GET /accounts/\d{1,3}/transfers $`),
	"account":            regexp.MustCompile(`^GET /accounts/\d{1,3} $`),
	"audit":              regexp.MustCompile(`^GET /total $`),
	"predict":            regexp.MustCompile(`^POST /predict {"image": "[09 ]{71,72}"}$`),
	"train":              regexp.MustCompile(`^POST /runs {"rounds": 3}$`),
	"runs":               regexp.MustCompile(`^GET /runs $`),
	"nodes":              regexp.MustCompile(`^GET /nodes $`),
	"seats":              regexp.MustCompile(`^POST /api/v1/namespaces/_/actions/seat-service\?blocking=true&result=true {"tripId": \d{1,2}, "date": "2015-04-\d\d", "seatClass": "ECONOMY"}$`),
	"order":              regexp.MustCompile(`^POST /api/v1/namespaces/_/actions/get-order-by-id\?blocking=true&result=true {"orderId": "nobody-has-this"}$`),
	"book":               regexp.MustCompile(`^POST /api/v1/namespaces/_/actions/save-order-info\?.* {"order": {"accountId": "[a-zA-Z0-9]{20}", "tripId": \d{1,2}, "travelDate": "2015-04-\d\d", "seatClass": "ECONOMY"}}$`),
	"cancel":             regexp.MustCompile(`^POST /api/v1/namespaces/_/actions/save-order-info\?.* {"order": {"accountId": "[a-zA-Z0-9]{20}", "tripId": \d{1,2}, "travelDate": "2015-04-\d\d", "seatClass": "FIRST"}}$`),
	"search":             regexp.MustCompile(`^(POST /api/v1/namespaces/_/actions/query-for-travel\?.* {"start": "AP\d\d", "end": "AP\d\d", "rId": \d{1,2}, "trainTypeId": [1-4]}|GET /hotels\?inDate=2015-04-(09|1\d|2[0-3])&outDate=2015-04-(1\d|2[0-4])&lat=3[78]\.\d{4}&lon=-12[12]\.\d{3} )$`),
	"recommend":          regexp.MustCompile(`^GET /(api/recommendations\?productIds=[0-9A-Z]{10}&sessionId=[a-zA-Z0-9]{16}&currencyCode=USD|recommendations\?require=(dis|rate|price)&lat=3[78]\.\d{4}&lon=-12[12]\.\d{3}) $`),
	"user":               regexp.MustCompile(`^POST /user\?username=Cornell_\d{1,3}&password=\d{10,30} $`),
	"reserve":            regexp.MustCompile(`^POST /reservation\?inDate=20\d\d-\d\d-\d\d&outDate=20\d\d-\d\d-\d\d&lat=[\d.]+&lon=-[\d.]+&hotelId=\d{1,2}&customerName=Cornell_\d{1,3}&username=Cornell_\d{1,3}&password=\d{10,30}&number=1 $`),
	"login":              regexp.MustCompile(`^POST /api/user/login username=username_(\d{1,3})&password=password_\d{1,3}$`),
	"read-home-timeline": regexp.MustCompile(`^GET /wrk2-api/home-timeline/read\?user_id=\d{1,3}&start=\d{1,3}&stop=\d{2,3} $`),
	"home":               regexp.MustCompile(`^GET / $`),
	"browse":             regexp.MustCompile(`^GET /(api/products/[0-9A-Z]{10}\?currencyCode=[A-Z]{3}|catalogue\?tags=[a-z]*) $`),
	"catalogue":          regexp.MustCompile(`^GET /catalogue $`),
	"look":               regexp.MustCompile(`^GET /catalogue/[0-9a-f-]{36} $`),
	"pages":              regexp.MustCompile(`^GET / $`),
	"fill-cart":          regexp.MustCompile(`^DELETE /cart $`),
	"too-dear":           regexp.MustCompile("^" + visitor + "$"),
	"advertise":          regexp.MustCompile(`^GET /api/data\?contextKeys=[a-z]+ $`),
	"reviews":            regexp.MustCompile(`^GET /api/product-reviews/[0-9A-Z]{10} $`),
	"assistant":          regexp.MustCompile(`^POST /api/product-ask-ai-assistant/[0-9A-Z]{10} {"question": "[A-Za-z ]+\?"}$`),
	"currencies":         regexp.MustCompile(`^GET /api/currency $`),
	"shipping":           regexp.MustCompile(`^GET /api/shipping\?itemList=%5B.*%5D&currencyCode=[A-Z]{3}&address=%7B.*%7D $`),
	"cart":               regexp.MustCompile(`^POST /api/cart {"userId": "[a-zA-Z0-9]{24}", "item": {"productId": "[0-9A-Z]{10}", "quantity": \d}}$`),
	"buy":                regexp.MustCompile("^(" + visitor + `|POST /api/cart {"userId": "[a-zA-Z0-9]{24}", "item": {"productId": "[0-9A-Z]{10}", "quantity": \d}})$`),
	"find-trips":         regexp.MustCompile(`^POST /api/v1/travelservice/trips/left {"startingPlace": "[A-Z][a-zA-Z ]+", "endPlace": "[A-Z][a-zA-Z ]+", "departureTime": "20\d\d-\d\d-\d\d"}$`),
	"timetable":          regexp.MustCompile(`^GET /api/v1/stationservice/stations $`),
	"sign-in":            signIn,
	"book-seat":          signIn,
	"cancel-order":       signIn,
	"join":               regexp.MustCompile(`^POST /api/v1/userservice/users/register {"userName": "visitor_[a-zA-Z0-9]{16}", "password": "[a-zA-Z0-9]{12}", "email": "visitor_[a-zA-Z0-9]{16}@example.com", "documentNum": "\d{12}"}$`),
	"read-user-timeline": regexp.MustCompile(`^GET /wrk2-api/user-timeline/read\?user_id=\d{1,3}&start=\d{1,3}&stop=\d{2,3} $`),
}

func TestRequestForms(t *testing.T) {
	for _, mix := range mixes(t) {
		for _, p := range plan(t, mix, 5, 2000) {
			if re := forms[p.Operation]; re != nil {
				if text := p.Method + " " + p.Path + " " + p.Body; !re.MatchString(text) {
					t.Fatalf("%s: %s", p.Operation, text)
				}
				continue
			}
			checkPost(t, p)
		}
	}
}

var text = regexp.MustCompile(`^[a-zA-Z0-9]{256}( @username_\d{1,3}){1,6}( http://[a-zA-Z0-9]{64}){1,6}$`)

func checkPost(t *testing.T, p Planned) {
	t.Helper()
	form, err := url.ParseQuery(p.Body)
	if err != nil || p.Method != "POST" || p.Path != "/wrk2-api/post/compose" ||
		!slices.Contains(p.Headers, Field{"Content-Type", "application/x-www-form-urlencoded"}) {
		t.Fatalf("%+v: %v", p, err)
	}
	if !text.MatchString(form.Get("text")) {
		t.Fatalf("text %q", form.Get("text"))
	}
	if form.Get("username") != "username_"+form.Get("user_id") || strings.Contains(form.Get("text")+" ", "@"+form.Get("username")+" ") {
		t.Fatalf("%s mentions himself: %s", form.Get("username"), form.Get("text"))
	}
	ids := regexp.MustCompile(`^\[("\d{18}",?){1,5}\]$`)
	if !ids.MatchString(form.Get("media_ids")) || strings.Count(form.Get("media_ids"), ",") != strings.Count(form.Get("media_types"), ",") {
		t.Fatalf("media %s, %s", form.Get("media_ids"), form.Get("media_types"))
	}
}
