package ask

import (
	"context"
	"errors"
)

// Login is what a client logs in to a store with.
type Login struct{ User, Password string }

// ErrRefused is the error of a question to a store that does not let its asker in.
var ErrRefused = errors.New("the login is refused")

type loginKey struct{}

// WithLogin has questions log in with something else than what the application begins with.
func WithLogin(ctx context.Context, l Login) context.Context {
	return context.WithValue(ctx, loginKey{}, l)
}

// LoginOf is what [WithLogin] gave.
func LoginOf(ctx context.Context) (Login, bool) {
	l, ok := ctx.Value(loginKey{}).(Login)
	return l, ok
}
