package page

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
)

// CookiePrefix is how the names of the site's cookies begin. They are for this program alone.
const CookiePrefix = "aiopslab-"

// door lets those in who have the key or the token, and remembers them by a cookie. Neither is in the cookie.
type door struct {
	key, token string
	pass       string // the value of the cookie
	cookie     string // its name: another server on this machine has another one
}

func newDoor(token string) *door {
	d := &door{key: rand.Text(), token: token, pass: rand.Text()}
	sum := sha256.Sum256([]byte(d.pass))
	d.cookie = CookiePrefix + hex.EncodeToString(sum[:4])
	return d
}

// same compares secrets in a time that tells nothing of them. Nothing is the same as no secret.
func same(secret, shown string) bool {
	a, b := sha256.Sum256([]byte(secret)), sha256.Sum256([]byte(shown))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && secret != ""
}

func (d *door) opens(shown string) bool {
	byKey, byToken := same(d.key, shown), same(d.token, shown)
	return byKey || byToken
}

// knows reports whether a request is of somebody who was let in, or who shows the token as callers of the API do.
func (d *door) knows(r *http.Request) bool {
	for _, c := range r.CookiesNamed(d.cookie) {
		if same(d.pass, c.Value) {
			return true
		}
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && d.opens(token)
}

// admit gives the cookie. Only this site's own pages send it back, and scripts cannot read it.
func (d *door) admit(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{
		Name: d.cookie, Value: d.pass, Path: Prefix, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil,
	})
}

// guard lets a request through to a page.
func (d *door) guard(next handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Has("key") && r.Method == http.MethodGet {
			if !d.opens(q.Get("key")) {
				d.ask(w, r, "This link is of a server that has ended. Take the one that the command printed last.")
				return
			}
			d.admit(w, r)
			q.Del("key") // It is not to stay in the address bar.
			to := r.URL.EscapedPath()
			if len(q) > 0 {
				to += "?" + q.Encode()
			}
			http.Redirect(w, r, to, http.StatusSeeOther)
			return
		}
		if !d.knows(r) {
			d.ask(w, r, "")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// enter takes the token of a form.
func (d *door) enter(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if !d.opens(strings.TrimSpace(r.PostFormValue("token"))) {
		d.ask(w, r, "That is not the server's token.")
		return
	}
	d.admit(w, r)
	http.Redirect(w, r, Prefix, http.StatusSeeOther)
}

// ask says what is needed.
func (d *door) ask(w http.ResponseWriter, r *http.Request, wrong string) {
	render(w, r, http.StatusUnauthorized, "enter", view{Title: "Who is there?", Data: struct {
		Wrong string
		Token bool
	}{wrong, d.token != ""}})
}
