package nginx

import "net/http"

// headerCodes are the answers that get added headers even if these are not for all.
var headerCodes = map[int]bool{
	200: true, 201: true, 204: true, 206: true, 301: true, 302: true, 303: true, 304: true,
	307: true, 308: true,
}

// writer sends an answer, adding what the configuration adds to each, and remembers it for the log.
type writer struct {
	http.ResponseWriter
	x      *exchange
	forced int // the status instead of 200
	status int // 0 until the header is sent
	bytes  int64
}

// WriteHeader sends the header. Only the first call counts.
func (w *writer) WriteHeader(code int) {
	if code < 200 { // There is more to come.
		w.ResponseWriter.WriteHeader(code)
		return
	}
	if w.status != 0 {
		return
	}
	if w.forced != 0 && code == http.StatusOK {
		code = w.forced
	}
	w.status = code
	s := w.x.scope()
	h := w.Header()
	h.Set("Server", "nginx")
	if s.tokens {
		h.Set("Server", "nginx/"+Version)
	}
	for _, add := range s.headers {
		if add.always || headerCodes[code] {
			if value := add.value.eval(w.x); value != "" {
				h.Add(add.name, value)
			}
		}
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *writer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap gives http.ResponseController the rest: flushing, and taking over the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
