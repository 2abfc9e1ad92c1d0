package social

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"log/slog"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/app/social/socialpb"
)

const (
	tokenLife = time.Hour
	// secretVar names the variable with the key that signs tokens; nginx-thrift checks them with it.
	secretVar = "JWT_SECRET"
)

var userService = part{
	"user-service", 150 * time.Microsecond,
	func(ctx context.Context, s *service.Service, srv *grpc.Server) error {
		db, err := s.OpenDatabase(ctx, mongoURI("user-mongodb"), "user",
			map[string][]any{"user": service.Documents(accounts())})
		if err != nil {
			return err
		}
		users := db.Collection("user")
		if err := createIndex(ctx, s, users, "username"); err != nil {
			return err
		}
		graph, err := dial(s, "social-graph-service")
		if err != nil {
			return err
		}
		u := &user{
			userIDs: userIDs{s: s, users: users, cache: s.Memcached("user-memcached:11211")},
			graph:   socialpb.NewSocialGraphServiceClient(graph), secret: []byte(s.Env.Getenv(secretVar)),
		}
		s.Recall(u.recall)
		socialpb.RegisterUserServiceServer(srv, u)
		return nil
	},
}

type account struct {
	UserID    int64  `bson:"user_id"`
	Username  string `bson:"username"`
	FirstName string `bson:"first_name"`
	LastName  string `bson:"last_name"`
	Salt      string `bson:"salt"`
	Password  string `bson:"password"` // SHA-256 of the password and the salt, in hexadecimal
}

func passwordSum(password, salt string) string {
	sum := sha256.Sum256([]byte(password + salt))
	return hex.EncodeToString(sum[:])
}

type user struct {
	socialpb.UnimplementedUserServiceServer
	userIDs
	graph  socialpb.SocialGraphServiceClient
	secret []byte
}

// RegisterUser adds a user, also to the social graph.
func (u *user) RegisterUser(ctx context.Context, req *socialpb.RegisterRequest) (*socialpb.UserId, error) {
	if req.Username == "" || req.Password == "" {
		return nil, status.Error(codes.InvalidArgument, "a user needs a name and a password")
	}
	id := req.UserId
	if !req.WithId {
		id = userID(req.Username)
	}
	a := account{
		UserID: id, Username: req.Username, FirstName: req.FirstName, LastName: req.LastName,
		Salt: rand.Text(),
	}
	a.Password = passwordSum(req.Password, a.Salt)
	err := u.s.Store(ctx, "mongodb", "insert user", func(ctx context.Context) error {
		_, err := u.users.InsertOne(ctx, a)
		return err
	})
	if mongo.IsDuplicateKeyError(err) {
		return nil, status.Errorf(codes.AlreadyExists, "User %s already existed.", req.Username)
	}
	if err != nil {
		return nil, err
	}
	if _, err := u.graph.InsertUser(ctx, &socialpb.UserId{UserId: id}); err != nil {
		return nil, err
	}
	logRegistered(u.s.Log, time.Now(), a)
	return &socialpb.UserId{UserId: id}, nil
}

// userID is the ID of a user that has not come with one.
func userID(username string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(username)) // It never fails.
	return int64(h.Sum64() >> 1)
}

// logRegistered logs that somebody has registered at a time, from one place for all times.
func logRegistered(log *slog.Logger, at time.Time, a account) {
	service.LogAt(log, slog.LevelInfo, at, "Registered user", "username", a.Username, "user_id", a.UserID)
}

// Login checks a password and returns a token.
func (u *user) Login(ctx context.Context, req *socialpb.LoginRequest) (*socialpb.Token, error) {
	var a account
	err := u.s.Store(ctx, "mongodb", "findOne user", func(ctx context.Context) error {
		return u.users.FindOne(ctx, bson.M{"username": req.Username}).Decode(&a)
	})
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return nil, err
	}
	if err != nil || subtle.ConstantTimeCompare([]byte(a.Password), []byte(passwordSum(req.Password, a.Salt))) != 1 {
		return nil, status.Error(codes.Unauthenticated, "Incorrect username or password")
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		UserID: a.UserID, Username: a.Username,
		RegisteredClaims: jwt.RegisteredClaims{ExpiresAt: jwt.NewNumericDate(time.Now().Add(tokenLife))},
	}).SignedString(u.secret)
	return &socialpb.Token{Token: token}, err
}

// claims are what a token says of its holder.
type claims struct {
	UserID   int64  `json:"user_id"`
	Username string `json:"username"`
	jwt.RegisteredClaims
}

// ComposeCreator completes who writes a post: with the ID, if only the name is known.
func (u *user) ComposeCreator(ctx context.Context, req *socialpb.Creator) (*socialpb.Creator, error) {
	if req.Username == "" || req.UserId != 0 {
		return req, nil
	}
	ids, err := u.lookup(ctx, req.Username)
	if err != nil {
		return nil, err
	}
	return &socialpb.Creator{UserId: ids[req.Username], Username: req.Username}, nil
}

// GetUserId finds a user by name.
func (u *user) GetUserId(ctx context.Context, req *socialpb.UsernameRequest) (*socialpb.UserId, error) {
	ids, err := u.lookup(ctx, req.Username)
	if err != nil {
		return nil, err
	}
	id, ok := ids[req.Username]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "User %s is not registered.", req.Username)
	}
	return &socialpb.UserId{UserId: id}, nil
}
