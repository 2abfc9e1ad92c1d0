package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
	"github.com/aiopslab/aiopslab/internal/bench/records"
	"github.com/aiopslab/aiopslab/server/page"
)

const (
	longSteps = 300
	// At most so long in the server, and so much over the wire, for a page.
	pageMillis    = 300
	pageKilobytes = 500
)

// benchPage asks for the pages that have most to show.
func benchPage(_ context.Context, r *run) error {
	dir, cache := filepath.Join(r.dir, "pages"), filepath.Join(r.dir, "page-indexes")
	if err := records.Fill(dir, indexRuns); err != nil {
		return err
	}
	long, err := records.Long(dir, longSteps)
	if err != nil {
		return err
	}
	site := page.New(page.Options{Dir: dir, Cache: cache})
	defer site.Close()
	w := httptest.NewRecorder()
	site.ServeHTTP(w, httptest.NewRequest(http.MethodGet, site.Link(), nil))
	cookie, _, _ := strings.Cut(w.Header().Get("Set-Cookie"), ";")
	for _, p := range []struct{ what, path string }{
		{fmt.Sprintf("first page of %d runs", indexRuns), page.Prefix},
		{fmt.Sprintf("matrix of %d runs", indexRuns), page.Prefix + "?show=matrix"},
		{fmt.Sprintf("leaderboard of %d runs", indexRuns), page.Prefix + "?show=board"},
		{fmt.Sprintf("%d runs searched", indexRuns), page.Prefix + "?q=pod_kill+geo&sort=-cost"},
		{fmt.Sprintf("run of %d steps", longSteps), page.Prefix + "runs/" + long},
	} {
		took, size := measure.Of("ms"), measure.Of("kB")
		for i := range r.rounds + 1 {
			ask := httptest.NewRequest(http.MethodGet, p.path, nil)
			ask.Header.Set("Cookie", cookie)
			ask.Header.Set("Accept-Encoding", "gzip")
			w := httptest.NewRecorder()
			start := time.Now()
			site.ServeHTTP(w, ask)
			if w.Code != http.StatusOK {
				return fmt.Errorf("%s: status %d", p.path, w.Code)
			}
			if i == 0 {
				continue // The index is made, once.
			}
			took.Add(float64(time.Since(start).Microseconds()) / 1000)
			size.Add(float64(w.Body.Len()) / 1000)
		}
		r.report(measure.Row{What: p.what + ", in the server", Value: took, Target: measure.AtMost(pageMillis)})
		r.report(measure.Row{What: p.what + ", over the wire", Value: size, Target: measure.AtMost(pageKilobytes)})
	}
	return nil
}
