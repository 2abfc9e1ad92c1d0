package social

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	mediaFrontendCost = 300 * time.Microsecond
	maxMedia          = 8 << 20
)

// mediaFrontendMain stores pictures and serves them.
func mediaFrontendMain(ctx context.Context, env *kit.Env) error {
	s, err := service.New(ctx, env, service.Config{Name: "media-frontend"})
	if err != nil {
		return err
	}
	defer s.Close()
	client, err := s.Mongo(mongoURI("media-mongodb"))
	if err != nil {
		return s.Fatal(ctx, "Failed to start media-frontend", err)
	}
	m := &mediaFrontend{s: s, files: client.Database("media").Collection("media")}
	s.Recall(m.recall)
	mux := http.NewServeMux()
	s.HandleFunc(mux, "POST /upload-media", "/upload-media", mediaFrontendCost, m.upload)
	s.HandleFunc(mux, "GET /get-media/", "/get-media", mediaFrontendCost, m.get)
	s.Log.Info("Starting the media-frontend server...", slog.Int("port", 8080))
	return s.ServeHTTP(ctx, http.MaxBytesHandler(mux, maxMedia), ":8080")
}

type mediaFile struct {
	Name string `bson:"filename"`
	Type string `bson:"media_type"`
	Data []byte `bson:"data"`
}

type mediaFrontend struct {
	s     *service.Service
	files *mongo.Collection
}

// upload stores the file of a form's field "media" under an ID.
func (m *mediaFrontend) upload(w http.ResponseWriter, r *http.Request) {
	file, header, err := r.FormFile("media")
	if err != nil {
		http.Error(w, "no file in field media: "+err.Error(), http.StatusBadRequest)
		return
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var b [8]byte
	_, _ = rand.Read(b[:])
	id := strconv.FormatUint(binary.BigEndian.Uint64(b[:])>>1, 10)
	kind := strings.TrimPrefix(path.Ext(header.Filename), ".")
	err = m.s.Store(r.Context(), "mongodb", "insert media", func(ctx context.Context) error {
		_, err := m.files.InsertOne(ctx, mediaFile{Name: id + "." + kind, Type: kind, Data: data})
		return err
	})
	if err != nil {
		m.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"media_id": id, "media_type": kind})
}

// get serves the file that the query, or else the path, names.
func (m *mediaFrontend) get(w http.ResponseWriter, r *http.Request) {
	name := r.FormValue("filename")
	if name == "" {
		name = path.Base(r.URL.Path)
	}
	var f mediaFile
	err := m.s.Store(r.Context(), "mongodb", "findOne media", func(ctx context.Context) error {
		return m.files.FindOne(ctx, bson.M{"filename": name}).Decode(&f)
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		http.NotFound(w, r)
		return
	}
	if err != nil {
		m.fail(w, r, err)
		return
	}
	_, _ = w.Write(f.Data)
}

func (m *mediaFrontend) fail(w http.ResponseWriter, r *http.Request, err error) {
	m.s.Log.ErrorContext(r.Context(), "Request failed", slog.String("url", r.URL.Path), slog.Any("error", err))
	http.Error(w, err.Error(), http.StatusInternalServerError)
}
