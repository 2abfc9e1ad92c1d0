package trainticket

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// tokenLife is how long a token is good.
const tokenLife = time.Hour

// claims are what a token says.
type claims struct {
	User    string `json:"id"`
	Name    string `json:"sub"`
	Expires int64  `json:"exp"`
}

const tokenHead = `{"alg":"HS256"}`

// sign makes a token, a JWT.
func (c claims) sign(key string) (string, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(tokenHead)) + "." + base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(mac(key, text)), nil
}

func mac(key, text string) []byte {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte(text))
	return m.Sum(nil)
}

// readToken returns what a token says that was signed with the key and is still good.
func readToken(key, token string, now time.Time) (c claims, ok bool) {
	i := strings.LastIndexByte(token, '.')
	if i < 0 || len(token) > 4096 {
		return c, false
	}
	sum, err := base64.RawURLEncoding.DecodeString(token[i+1:])
	if err != nil || !hmac.Equal(sum, mac(key, token[:i])) {
		return c, false
	}
	_, body, _ := strings.Cut(token[:i], ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	return c, err == nil && json.Unmarshal(text, &c) == nil && now.Unix() < c.Expires
}

// tokenKey is what tokens are signed with.
func tokenKey(s *server) (string, error) {
	key := s.Env.Getenv("JWT_SECRET")
	if key == "" {
		return "", errors.New("JWT_SECRET is not set: want the key that tokens are signed with")
	}
	return key, nil
}

// credentials are what somebody logs in with; UserID is there when they are made.
type credentials struct {
	UserID   string `json:"userId,omitempty"`
	UserName string `json:"username"`
	Password string `json:"password"`
}

// session is what somebody gets who has logged in.
type session struct {
	UserID   string `json:"userId"`
	UserName string `json:"username"`
	Token    string `json:"token"`
}

// authPart knows who may log in.
var authPart = part{"ts-auth-service", "ts-auth-mongo", loginSeed, func(_ context.Context, s *server) error {
	key, err := tokenKey(s)
	if err != nil {
		return err
	}
	const path = "/api/v1/users/login"
	handle(s, "POST "+path, path, func(r *http.Request, in credentials) (out session, err error) {
		l, err := findOne[login](r.Context(), s, "auth_user", bson.M{"_id": in.UserName}, "user "+in.UserName)
		if _, unknown := errors.AsType[*refusal](err); err != nil && !unknown {
			return out, err
		}
		if subtle.ConstantTimeCompare([]byte(l.Sum), []byte(passwordSum(l.User, in.Password))) == 0 {
			return out, refuse(http.StatusUnauthorized, "Incorrect username or password.")
		}
		token, err := claims{l.User, l.Name, time.Now().Add(tokenLife).Unix()}.sign(key)
		return session{l.User, l.Name, token}, err
	})
	handle(s, "POST /api/v1/auth", "/api/v1/auth", func(r *http.Request, in credentials) (bool, error) {
		if in.UserID == "" || in.UserName == "" {
			return false, refuse(http.StatusBadRequest, "want a userId and a username")
		}
		doc := login{in.UserName, in.UserID, passwordSum(in.UserID, in.Password)}
		return true, insert(r.Context(), s, "auth_user", doc, func() error {
			had, err := findOne[login](r.Context(), s, "auth_user", bson.M{"_id": in.UserName}, "user "+in.UserName)
			if err == nil && had != doc {
				err = refuse(http.StatusConflict, "the name %s is taken", in.UserName)
			}
			return err
		})
	})
	return nil
}}

// insert writes a document. If there is one already, had decides.
func insert(ctx context.Context, s *server, collection string, doc any, had func() error) error {
	exists := false
	err := s.Store(ctx, "mongodb", "insert "+collection, func(ctx context.Context) error {
		_, err := s.db.Collection(collection).InsertOne(ctx, doc)
		if exists = mongo.IsDuplicateKeyError(err); exists {
			return nil // That is an answer, not a failure.
		}
		return err
	})
	if err == nil && exists {
		return had()
	}
	return err
}

// registration is what somebody tells who wants to be a user.
type registration struct {
	UserName    string `json:"userName"`
	Password    string `json:"password"`
	Email       string `json:"email"`
	DocumentNum string `json:"documentNum"`
}

var userName = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,64}$`)

// userPart knows the users.
var userPart = part{"ts-user-service", "ts-user-mongo", userSeed, func(_ context.Context, s *server) error {
	const base = "/api/v1/userservice/users"
	const join = base + "/register"
	handle(s, "POST "+join, join, func(r *http.Request, in registration) (out person, err error) {
		if !userName.MatchString(in.UserName) || len(in.Password) < 6 || len(in.Password) > 200 {
			return out, refuse(http.StatusBadRequest,
				"want a userName of 3 to 64 letters, digits, _, . and -, and a password of 6 to 200 characters")
		}
		out = person{userID(in.UserName), in.UserName, in.Email, in.DocumentNum}
		// Who may log in first: a user who cannot would have the name for good.
		_, err = call[bool](r.Context(), s, "ts-auth-service", http.MethodPost, "/api/v1/auth",
			credentials{out.ID, in.UserName, in.Password})
		if err != nil {
			return out, err
		}
		err = insert(r.Context(), s, "user", out, func() error { return nil })
		if err == nil {
			s.Log.InfoContext(r.Context(), "Registered", slog.String("user", out.Name))
		}
		return out, err
	})
	handle(s, "GET "+base+"/id/{id}", base+"/id", func(r *http.Request, _ struct{}) (person, error) {
		id := r.PathValue("id")
		return findOne[person](r.Context(), s, "user", bson.M{"_id": id}, fmt.Sprintf("user %q", id))
	})
	return nil
}}
