package consul

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
)

func (a *api) kvGet(r *http.Request) (any, error) {
	key, q := r.PathValue("key"), r.URL.Query()
	pairs := a.state.get(key, q.Has("recurse") || q.Has("keys"))
	if len(pairs) == 0 {
		return nil, &statusError{http.StatusNotFound, ""}
	}
	if q.Has("raw") {
		return rawBody(pairs[0].Value), nil
	}
	if q.Has("keys") {
		keys := make([]string, len(pairs))
		for i, p := range pairs {
			keys[i] = p.Key
		}
		return keys, nil
	}
	return pairs, nil
}

func (a *api) kvPut(r *http.Request) (any, error) {
	if r.PathValue("key") == "" {
		return nil, &statusError{http.StatusBadRequest, "Missing key name"}
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxValue+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxValue {
		return nil, &statusError{
			http.StatusRequestEntityTooLarge,
			fmt.Sprintf("Request body(%d bytes) too large, max size: %d bytes.", len(b), maxValue),
		}
	}
	flags, _ := strconv.ParseUint(r.FormValue("flags"), 10, 64)
	a.state.put(r.PathValue("key"), b, flags)
	return true, nil
}

func (a *api) kvDelete(r *http.Request) (any, error) {
	a.state.remove(r.PathValue("key"), r.URL.Query().Has("recurse"))
	return true, nil
}
