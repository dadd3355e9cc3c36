package ui

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// NewToken returns a new secret for an address: 32 hexadecimal digits.
func NewToken() string {
	secret := make([]byte, 16)
	rand.Read(secret) // never fails
	return hex.EncodeToString(secret)
}

// guard passes on the requests that may be answered. See the package comment.
type guard struct {
	token string
	next  http.Handler
}

// policy lets a page load only the files of this server. Scripts and styles inside the page do not run.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case !local(r.Host):
		refuse(w, "this server answers to 127.0.0.1 and localhost only")
	case fromElsewhere(r):
		refuse(w, "this server answers its own pages only")
	case g.enters(r):
		g.admit(w, r)
	case !g.admitted(r):
		refuse(w, "open the address that commq ui printed; it ends in ?token= and a secret")
	default:
		g.next.ServeHTTP(w, r)
	}
}

func refuse(w http.ResponseWriter, why string) { http.Error(w, "commq ui: "+why, http.StatusForbidden) }

// local is true if a Host header names this machine. The port may be another one: that of an ssh tunnel.
func local(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	return name == "localhost" || name == "127.0.0.1" || name == "[::1]" || name == "::1"
}

// fromElsewhere is true if the browser says that a page of another site made the request. Opening the page itself is
// allowed from anywhere.
func fromElsewhere(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return true
		}
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none" && (r.URL.Path != "/" || r.Method != http.MethodGet)
}

// enters is true if the request opens the page by the printed address.
func (g *guard) enters(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" && g.is(r.URL.Query().Get("token"))
}

// admit gives the browser a cookie in place of the secret in the address, which would stay in its history. Browsers
// send it with links from elsewhere too, such as a click in a web terminal; fromElsewhere lets these open only the
// page.
func (g *guard) admit(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: g.cookie(), Value: g.token, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// admitted is true if the request has the secret: as a cookie, or in a header as scripts send it.
func (g *guard) admitted(r *http.Request) bool {
	if token, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); is {
		return g.is(token)
	}
	c, err := r.Cookie(g.cookie())
	return err == nil && g.is(c.Value)
}

func (g *guard) is(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1
}

// cookie returns the name of the cookie. Cookies do not know ports, so servers beside each other need names of their
// own.
func (g *guard) cookie() string {
	sum := sha256.Sum256([]byte(g.token))
	return "commq-" + hex.EncodeToString(sum[:4])
}
