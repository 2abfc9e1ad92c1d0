package sockshop

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/aiopslab/aiopslab/app/service"
)

const (
	// shiftedVersion is the version of catalogue whose metrics have their labels shifted by one, and currentVersion
	// the one that puts that right. There is no later one.
	shiftedVersion = "0.3.4"
	currentVersion = "0.3.5"

	// What requests cost. With the limit of the manifest, 50 people who look at the catalogue once a second take
	// about 70 % of it, and 80 want more than there is.
	listCost = 3000 * time.Microsecond
	sockCost = 1200 * time.Microsecond
	fileCost = 400 * time.Microsecond
	pageSize = 10

	// connLife is how long a connection to the database is kept: who is not let in any more finds out soon.
	connLife = 5 * time.Second

	defaultDSN = "catalogue_user:default_password@tcp(catalogue-db:3306)/socksdb"
)

// sock is one of the catalogue.
type sock struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	ImageURL    []string `json:"imageUrl"`
	Price       float64  `json:"price"`
	Count       int      `json:"count"`
	Tags        []string `json:"tag"`
}

var cataloguePart = part{
	name: "catalogue", port: 80, memory: 14 << 20, size: 41 << 20, tags: currentVersion, start: startCatalogue,
}

// catalogue reads socks from the database.
type catalogue struct {
	s  *server
	db *sql.DB
}

func startCatalogue(ctx context.Context, s *server) error {
	flags := flag.NewFlagSet("catalogue", flag.ContinueOnError)
	flags.SetOutput(s.Env.Stderr)
	dsn := flags.String("DSN", defaultDSN, "the database, as user:password@tcp(host:port)/name")
	port := flags.Int("port", s.port, "where to listen")
	flags.String("images", "./images/", "where the pictures are")
	flags.String("zipkin", s.Env.Getenv("ZIPKIN"), "where traces go")
	if err := flags.Parse(s.Env.Args[1:]); err != nil {
		return err
	}
	s.port = *port
	db, err := openSQL(s.Service, *dsn)
	if err != nil {
		return err
	}
	s.OnClose(func(context.Context) error { return db.Close() })
	if err := db.PingContext(ctx); err != nil {
		s.Log.Error("Unable to connect to Database", slog.Any("err", err))
	}
	c := &catalogue{s, db}
	s.well("catalogue-db", db.PingContext)
	list, size, tags := &breaker{}, &breaker{}, &breaker{}
	handle(s, "GET /catalogue", listCost, http.StatusOK, func(r *http.Request, _ struct{}) (found []sock, err error) {
		return found, list.do(func() (err error) { found, err = c.list(r); return err })
	})
	handle(s, "GET /catalogue/size", sockCost, http.StatusOK, func(r *http.Request, _ struct{}) (any, error) {
		var all []sock
		err := size.do(func() (err error) {
			all, err = c.find(r.Context(), words(r.URL.Query().Get("tags")))
			return err
		})
		return object{"size": len(all), "err": nil}, err
	})
	handle(s, "GET /catalogue/{id}", sockCost, http.StatusOK, c.get)
	handle(s, "GET /tags", sockCost, http.StatusOK, func(r *http.Request, _ struct{}) (any, error) {
		var names []string
		err := tags.do(func() (err error) { names, err = c.tags(r.Context()); return err })
		return object{"tags": names, "err": nil}, err
	})
	s.HandleFunc(s.mux, "GET /catalogue/images/{file}", "/catalogue/images/{file}", fileCost, picture)
	return nil
}

// openSQL makes a client of a MySQL server. It connects when it is first used.
func openSQL(s *service.Service, dsn string) (*sql.DB, error) {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("-DSN: %w", err)
	}
	c.DialFunc, c.Logger, c.InterpolateParams = s.Env.Net.DialContext, &mysql.NopLogger{}, true
	c.Timeout, c.ReadTimeout, c.WriteTimeout = service.StoreTimeout, service.StoreTimeout, service.StoreTimeout
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(8)
	db.SetConnMaxLifetime(connLife)
	return db, nil
}

// words are those between commas.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// find reads the socks with any of some tags, or all of them.
func (c *catalogue) find(ctx context.Context, tags []string) (list []sock, err error) {
	list = []sock{}
	err = c.s.Store(ctx, "mysql", "select sock", func(ctx context.Context) error {
		rows, err := c.db.QueryContext(ctx, "SELECT s.sock_id, s.name, s.description, s.price, s.count, "+
			"s.image_url_1, s.image_url_2, t.name FROM sock s LEFT JOIN sock_tag st ON st.sock_id = s.sock_id "+
			"LEFT JOIN tag t ON t.tag_id = st.tag_id ORDER BY s.sock_id, t.tag_id")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var one sock
			var tag sql.NullString
			images := make([]string, 2)
			err := rows.Scan(&one.ID, &one.Name, &one.Description, &one.Price, &one.Count, &images[0], &images[1], &tag)
			if err != nil {
				return err
			}
			if n := len(list); n == 0 || list[n-1].ID != one.ID {
				one.ImageURL, one.Tags = images, []string{}
				list = append(list, one)
			}
			if n := len(list) - 1; tag.Valid {
				list[n].Tags = append(list[n].Tags, tag.String)
			}
		}
		return rows.Err()
	})
	if len(tags) > 0 {
		list = slices.DeleteFunc(list, func(one sock) bool {
			return !slices.ContainsFunc(one.Tags, func(t string) bool { return slices.Contains(tags, t) })
		})
	}
	return list, err
}

// list returns a page of the catalogue.
func (c *catalogue) list(r *http.Request) ([]sock, error) {
	q, begun := r.URL.Query(), time.Now()
	page, err1 := numeric(q.Get("page"), 1)
	size, err2 := numeric(q.Get("size"), pageSize)
	if err := errors.Join(err1, err2); err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	all, err := c.find(r.Context(), words(q.Get("tags")))
	from := min(max(0, (page-1)*size), len(all))
	found := all[from:min(from+size, len(all))]
	if page == 0 || size == 0 {
		found = []sock{}
	}
	c.s.Log.InfoContext(r.Context(), "List", "method", "List", "tags", q.Get("tags"), "pageNum", page, "pageSize", size,
		"result", len(found), "err", err, "took", time.Since(begun))
	return found, err
}

// numeric reads a number that may be missing. None is larger than maxNumber.
func numeric(text string, missing int) (int, error) {
	const maxNumber = 10_000
	if text == "" {
		return missing, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxNumber {
		return 0, fmt.Errorf("%.20q is no number from 0 to %d", text, maxNumber)
	}
	return n, nil
}

// get returns one sock. It is not found if the database cannot be asked, either.
func (c *catalogue) get(r *http.Request, _ struct{}) (sock, error) {
	id, begun := r.PathValue("id"), time.Now()
	all, err := c.find(r.Context(), nil)
	i := slices.IndexFunc(all, func(one sock) bool { return one.ID == id })
	c.s.Log.InfoContext(r.Context(), "Get", "method", "Get", "id", id, "found", i >= 0, "err", err,
		"took", time.Since(begun))
	if err != nil || i < 0 {
		return sock{}, refuse(http.StatusNotFound, "not found")
	}
	return all[i], nil
}

func (c *catalogue) tags(ctx context.Context) (names []string, err error) {
	names = []string{}
	err = c.s.Store(ctx, "mysql", "select tag", func(ctx context.Context) error {
		rows, err := c.db.QueryContext(ctx, "SELECT name FROM tag ORDER BY tag_id")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			names = append(names, name)
		}
		return rows.Err()
	})
	return names, err
}

// picture draws a sock: an L of a colour that the name of the file gives it.
func picture(w http.ResponseWriter, r *http.Request) {
	hash := uint32(2166136261)
	for _, b := range []byte(r.PathValue("file")) {
		hash = (hash ^ uint32(b)) * 16777619
	}
	ink := image.NewUniform(color.RGBA{byte(hash), byte(hash >> 8), byte(hash >> 16), 255})
	img := image.NewRGBA(image.Rect(0, 0, 64, 64))
	draw.Draw(img, img.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(img, image.Rect(22, 6, 38, 56), ink, image.Point{}, draw.Src)
	draw.Draw(img, image.Rect(22, 42, 58, 56), ink, image.Point{}, draw.Src)
	w.Header().Set("Content-Type", "image/jpeg")
	_ = jpeg.Encode(w, img, nil)
}

const (
	// A breaker opens after so many failures on end, for breakerTime.
	breakerFailures = 5
	breakerTime     = 30 * time.Second
)

// breaker is a circuit breaker: while it is open nobody is asked.
type breaker struct {
	mu     sync.Mutex
	failed int
	until  time.Time
}

var errOpen = errors.New("circuit breaker is open")

// do does something, unless it has failed too often.
func (b *breaker) do(f func() error) error {
	b.mu.Lock()
	open := time.Now().Before(b.until)
	b.mu.Unlock()
	if open {
		return errOpen
	}
	err := f()
	_, refused := errors.AsType[*refusal](err)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil || refused || errors.Is(err, context.Canceled):
		b.failed = 0
	default:
		if b.failed++; b.failed > breakerFailures {
			b.failed, b.until = 0, time.Now().Add(breakerTime)
		}
	}
	return err
}
