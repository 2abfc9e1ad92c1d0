package hotel

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/hotel/hotelpb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const userCost = 200 * time.Microsecond

// userMain is the program user: it knows who may log in.
func userMain(ctx context.Context, env *kit.Env) error {
	s, c, err := start(ctx, env, "user")
	if err != nil {
		return err
	}
	defer s.Close()
	db, err := s.OpenDatabase(ctx, "mongodb://"+c["UserMongoAddress"], "user-db",
		map[string][]any{"user": service.Documents(users())})
	if err != nil {
		return s.Fatal(ctx, "Failed to initialize user database", err)
	}
	return serve(ctx, s, c, newConsul(s, c), "UserPort", userCost, func(srv *grpc.Server) {
		hotelpb.RegisterUserServer(srv, &user{s: s, users: db.Collection("user")})
	})
}

type user struct {
	hotelpb.UnimplementedUserServer
	s     *service.Service
	users *mongo.Collection
}

// CheckUser compares a password with the one stored, by its SHA-256 sum.
func (u *user) CheckUser(ctx context.Context, req *hotelpb.CheckUserRequest) (*hotelpb.CheckUserResult, error) {
	var account account
	err := u.s.Store(ctx, "mongodb", "findOne user", func(ctx context.Context) error {
		return u.users.FindOne(ctx, bson.M{"username": req.Username}).Decode(&account)
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		return &hotelpb.CheckUserResult{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &hotelpb.CheckUserResult{Correct: subtle.ConstantTimeCompare([]byte(account.Password),
		[]byte(passwordSum(req.Password))) == 1}, nil
}

func passwordSum(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}
