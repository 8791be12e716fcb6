package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"loki/internal/frontend/server/rest"
	"loki/internal/service/auth"
)

// handler returns what all requests go through before they find their endpoint.
func (s *Server) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.unasked.asks(r.Context())
		r = rest.Begin(w, r)
		out := &rest.StatusWriter{ResponseWriter: w}
		begun, panicked := time.Now(), false
		if !isProbe(r) {
			s.meter.inFlight.Add(1)
			defer s.meter.inFlight.Add(-1)
		}
		defer func() { s.logAnswer(r, out.Status, time.Since(begun), panicked) }() // also if the next one ends the connection
		defer func() {
			if p := recover(); p != nil {
				panicked = true
				s.answerPanic(out, r, p)
			}
		}()
		set := s.settings.Load()
		s.secure(w.Header(), set)
		if !s.crossOrigin(out, r, set) {
			return
		}
		if err := checkHost(r, set); err != nil {
			s.api.Fail(out, r, err)
			return
		}
		s.api.ServeHTTP(out, r)
	})
}

// isProbe reports whether a request is a health check. Health checks are frequent, so they are not counted.
func isProbe(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/healthz/") }

// logAnswer says in the log, the metrics and the audit record that a request was answered. A status of 0 is that of a stream
// that continues elsewhere, or of a client that has gone.
func (s *Server) logAnswer(r *http.Request, status int, took time.Duration, panicked bool) {
	ctx := r.Context()
	o := rest.OutcomeOf(ctx)
	if panicked {
		o.Err = rest.Internal()
	}
	switch {
	case status != 0:
	case o.Err != nil:
		status = o.Err.Status
	default:
		status = http.StatusOK
	}
	level := slog.LevelDebug
	if !isProbe(r) {
		level = slog.LevelInfo
		s.meter.count(r, o, status, took)
		s.note(ctx, r.Method, o)
	}
	if !s.o.Log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request_id", rest.RequestID(ctx)), slog.String("subject", rest.Subject(ctx).Subject), slog.String("method", r.Method), slog.String("path", pathOf(r)),
		slog.String("route", o.Route), slog.Int("status", status), slog.Float64("seconds", took.Seconds()),
	}
	for _, known := range []struct{ name, value string }{{"session_id", o.Session}, {"run_id", o.Run}, {"agent", o.Agent}} {
		if known.value != "" {
			attrs = append(attrs, slog.String(known.name, known.value))
		}
	}
	if o.Err != nil {
		attrs = append(attrs, slog.String("code", o.Err.Code))
	}
	s.o.Log.LogAttrs(ctx, level, "request", attrs...)
}

// pathOf returns the path of a request for the log. The token of a link that answers a question is left out.
func pathOf(r *http.Request) string {
	if strings.HasPrefix(r.URL.Path, answerPath) {
		return answerPath + "…"
	}
	return r.URL.Path
}

// answerPanic answers a request whose endpoint panicked. If the answer has begun, the connection ends, so that
// the client does not take it for whole.
func (s *Server) answerPanic(w *rest.StatusWriter, r *http.Request, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	s.o.Log.Error("panic", "request_id", rest.RequestID(r.Context()), "method", r.Method, "path", pathOf(r), "error", s.o.App.Hide(fmt.Sprint(p)), "stack", s.o.App.Hide(string(debug.Stack())))
	if w.Status != 0 {
		panic(http.ErrAbortHandler)
	}
	s.api.Fail(w, r, rest.Internal())
}

// The values of headers that all answers have. They are never changed.
var (
	noSniff  = []string{"nosniff"}
	deny     = []string{"DENY"}
	referrer = []string{"strict-origin-when-cross-origin"}
	hsts     = []string{"max-age=31536000; includeSubDomains"}
)

// secure sets the headers that keep browsers from misusing answers.
func (s *Server) secure(h http.Header, set *settings) {
	h["X-Content-Type-Options"] = noSniff
	h["X-Frame-Options"] = deny
	h["Referrer-Policy"] = referrer
	if set.ForceHTTPS {
		h["Strict-Transport-Security"] = hsts
	}
}

const (
	corsMethods = "GET, HEAD, POST, PATCH, DELETE"
	corsExposed = "X-Request-Id, Retry-After, Location, Idempotency-Replayed"
)

// crossOrigin allows pages of the origins that the configuration lists to use the server. It reports whether
// the request proceeds.
func (s *Server) crossOrigin(w http.ResponseWriter, r *http.Request, set *settings) bool {
	if len(set.CORS.AllowedOrigins) > 0 {
		w.Header().Add("Vary", "Origin")
	}
	origin := r.Header.Get("Origin")
	preflight := r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
	if origin == "" {
		return true
	}
	if !allowsOrigin(set, origin) {
		// Without keys a page of another site must not even cause anything.
		if err := new(http.CrossOriginProtection).Check(r); err != nil && set.keys == nil || preflight {
			s.api.Fail(w, r, rest.Forbidden("pages of %s may not use this server", origin).WithHint("the server's configuration lists the origins that may: api.cors.allowed_origins"))
			return false
		}
		return true
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", corsExposed)
	if set.CORS.AllowCredentials {
		h.Set("Access-Control-Allow-Credentials", "true")
	}
	if !preflight {
		return true
	}
	h.Set("Access-Control-Allow-Methods", corsMethods)
	// Whatever the page asks for: clients of OpenAI send headers of their own. No such header means more here
	// than a key does.
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return false
}

func allowsOrigin(set *settings, origin string) bool {
	return slices.ContainsFunc(set.CORS.AllowedOrigins, func(o string) bool { return o == "*" || strings.EqualFold(o, origin) })
}

// checkHost refuses requests for another name than this machine's to a server that asks for no key: a page of
// another site could otherwise have its own name point here, and be of the same origin then.
func checkHost(r *http.Request, set *settings) error {
	if set.keys != nil || isLoopbackName(r.Host) {
		return nil
	}
	return rest.Forbidden("the server asks for no key, so it answers only requests for localhost, 127.0.0.1 and [::1], not for %q", r.Host).
		WithHint("make a key: loki --key add NAME")
}

// authenticate returns who sends a request.
func (s *Server) authenticate(r *http.Request) (auth.Identity, error) {
	set := s.settings.Load()
	if set.keys == nil {
		return auth.Nobody(), nil
	}
	from := clientAddr(r, set.TrustedProxies)
	key, err := auth.Bearer(r.Header["Authorization"])
	var who auth.Identity
	if err == nil {
		who, err = set.keys.Verify(r.Context(), from, key)
	}
	reason := auth.Reason(err)
	if reason == "" {
		return who, err
	}
	if reason != auth.ReasonRateLimited && reason != auth.ReasonUnavailable {
		if tooMany := s.strange(r); tooMany != nil {
			return auth.Identity{}, tooMany
		}
	}
	s.o.Log.Warn("request refused", "request_id", rest.RequestID(r.Context()), "reason", reason, "address", from.String(), "error", err.Error())
	return auth.Identity{}, rest.RefusalError(err)
}

// strange counts a request of which it is not known who sends it. The error says that there were too many from its address.
func (s *Server) strange(r *http.Request) error {
	if tooMany := s.strangers.Take(auth.Network(clientAddr(r, s.settings.Load().TrustedProxies))); tooMany != nil {
		return rest.RefusalError(tooMany)
	}
	return nil
}

// isLocal reports whether a request comes from a program of this machine, and neither through a proxy nor from a page in a browser.
func (s *Server) isLocal(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	for _, name := range []string{"Origin", "Sec-Fetch-Site", "Forwarded", "X-Forwarded-For", "Via"} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	return err == nil && from.Addr().Unmap().IsLoopback() && isLoopbackName(r.Host)
}

// Limits of requests without a valid key from one address.
const (
	strangersPerMinute = 60
	strangersBurst     = 10
)

// clientAddr returns where a request comes from: the last address that the trusted proxies on its way report
// and that is not a trusted proxy.
func clientAddr(r *http.Request, proxies []netip.Prefix) netip.Addr {
	port, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := port.Addr().Unmap()
	trusted := func(a netip.Addr) bool {
		return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && trusted(addr); i-- {
		text := strings.TrimSpace(hops[i])
		hop, err := netip.ParseAddr(text)
		if err != nil { // some proxies add the port
			port, err := netip.ParseAddrPort(text)
			if err != nil {
				break
			}
			hop = port.Addr()
		}
		addr = hop.Unmap()
	}
	return addr
}
