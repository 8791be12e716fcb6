// Package server is the face of programs and browsers: it serves the REST API, the OpenAI-compatible
// endpoints and the page.
//
// What an endpoint does is in the packages below it, what all share in [loki/internal/frontend/server/rest]. Here
// they are put together and served, from the first line on standard error to the last request.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/frontend/server/answers"
	"loki/internal/frontend/server/conversations"
	"loki/internal/frontend/server/facts"
	"loki/internal/frontend/server/hooks"
	"loki/internal/frontend/server/mcpserver"
	"loki/internal/frontend/server/openai"
	"loki/internal/frontend/server/page"
	"loki/internal/frontend/server/rest"
	"loki/internal/frontend/server/runs"
	"loki/internal/frontend/server/schedules"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/service/auth/audit"
	"loki/internal/service/auth/issuer"
	"loki/internal/setup/config"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/alert"
	"loki/internal/workflow/run/manager"
	"loki/internal/workflow/schedule/trigger"
)

// Options configure Start.
type Options struct {
	App     *app.App
	Address string            // HOST:PORT; empty means that of the configuration; port 0 picks one
	Warn    func(text string) // shows the user a warning; nil shows none
	Log     *slog.Logger      // nil for none

	Observer event.Emitter // gets the events of all that is asked, also from several goroutines; nil for none
}

// Server is a server that accepts connections.
type Server struct {
	o        Options
	settings atomic.Pointer[settings]
	first    *settings // that it started with
	api      *rest.API
	kept     keptAnswers
	http     *http.Server
	unasked  unasked

	strangers auth.Rates[netip.Prefix] // requests without a valid key, by network
	fetched   *issuer.Keys             // that are fetched; nil for none
	unfetch   func()                   // ends that

	listener net.Listener
	started  time.Time

	runs    *manager.Manager
	offered *mcpserver.HTTP // nil unless MCP clients are served
	hosted  app.Hosted

	triggers *trigger.Service
	alerts   *alert.Service

	meter   *meter
	audit   atomic.Pointer[audit.Log] // nil if there is no record of who did what
	stores  stores
	scraped *metricsServer // nil if the metrics have no port of their own

	automation *automation

	lanes   rest.Lanes
	resumed chan struct{} // closed once no run resumes by itself any more

	cancel context.CancelCauseFunc // ends all requests
	served chan error              // what the listener ended with
}

// Start begins to serve. The caller ends it with Shutdown. ctx ends all requests at once. The error is a
// [*fault.Error] that says why the server cannot be as the configuration and the options want it.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	s := &Server{o: o, started: time.Now(), served: make(chan error, 1)}
	s.meter = newMeter(s.started)
	set, err := newSettings(o.App.Config.API, nil, o.Log)
	if err != nil {
		return nil, err
	}
	s.first = set
	s.settings.Store(set)
	address, err := set.address(o.Address)
	if err != nil {
		return nil, err
	}
	if address == NoAddress {
		s.listener = newNoListener()
	} else if s.listener, err = set.listen(ctx, address); err != nil {
		return nil, err
	}
	if set.keys == nil && address != NoAddress {
		o.Warn("the server asks for no key: every program and user of this machine can use it (loki --key add NAME makes a key)")
	}
	if s.scraped, err = s.listenForMetrics(ctx); err != nil {
		return nil, errors.Join(err, s.listener.Close())
	}
	o.App.MCP.OnAcquire(func(took time.Duration) { s.meter.acquired.Observe(took.Seconds()) })
	hosted, err := o.App.Host(ctx, set.publicURL(s.listener.Addr()), manager.Options{
		Limit: set.Limits.MaxConcurrentRuns, Log: o.Log, Also: s.observers(),
		Entered: func(ctx context.Context, id string) { rest.Began(ctx, "/v1/runs/"+id) },
	})
	if err != nil {
		s.scraped.close()
		return nil, errors.Join(err, s.listener.Close())
	}
	if s.triggers, err = o.App.Background.Triggers(hosted.Store, hosted.Runs); err != nil {
		s.scraped.close()
		return nil, errors.Join(err, hosted.Close(), s.listener.Close())
	}
	s.alerts = o.App.Alerts(hosted.Store, hosted.Desk, set.publicURL(s.listener.Addr()))
	_ = s.useAudit(ctx, set.Audit) // there is no other one that could fail to end
	s.hosted, s.runs = hosted, hosted.Runs
	if s.kept = answers.New(filepath.Join(o.App.Paths.StateDir, answersFile), nil); hosted.DB != nil {
		s.kept = answers.NewShared(hosted.DB, nil)
	}
	s.api = rest.New(rest.Options{Version: app.Version, Authenticate: s.authenticate, Hide: o.App.Hide, Log: o.Log, Kept: s.kept, Resource: s.resourceMetadata})
	s.api.SetLimits(set.limits())
	s.strangers.Of = "requests without a valid key"
	s.strangers.Set(strangersPerMinute, strangersBurst)
	ctx, s.cancel = context.WithCancelCause(ctx)
	if err := s.register(ctx); err != nil {
		s.cancel(err)
		s.scraped.close()
		return nil, errors.Join(err, s.hosted.Close(), s.listener.Close())
	}
	s.scraped.serve()
	s.fetch(ctx, set.published)
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,

		DisableGeneralOptionsHandler: true, // it would answer before all that requests go through here
		BaseContext:                  func(net.Listener) context.Context { return ctx },
		ConnContext:                  withConn,
		ConnState:                    s.unasked.follow,
		ErrorLog:                     slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	go func() {
		s.served <- s.http.Serve(newListener(s.listener, func() time.Duration { return s.api.Limits().Timeout }, mostConnections(), s.unasked.evict))
	}() // ends with Shutdown, which waits for it
	s.stores.background.Go(func() { s.alerts.Run(ctx) }) // ends with ctx
	s.resumed = make(chan struct{})
	go func() { // ends with Shutdown at the latest, which waits for it
		defer close(s.resumed)
		if set.ResumeOnStart {
			if err := s.runs.ResumeOnStart(ctx); err != nil {
				o.Log.Warn("interrupted runs were not resumed", "error", err)
			}
			s.resumeSpent(ctx) // the limits may be higher than those of the process before this one
		}
		s.runs.Wake(ctx)
	}()
	s.automation = automate(ctx, o.App, hosted, s.triggers)
	return s, nil
}

// keptAnswers are the answers of requests with an Idempotency-Key.
type keptAnswers interface {
	rest.Answers
	Close() error
}

// answersFile is the file of the answers of requests with an Idempotency-Key, beside the record of runs.
const answersFile = "requests.db"

// Addr returns where the server listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// register puts the endpoints together.
func (s *Server) register(ctx context.Context) error {
	set := s.settings.Load()
	seen := event.Tee(event.Func(s.runs.Emit), s.observers()) // besides who asks; those of runs that the manager starts are seen by it
	s.metadata()
	s.documents()
	s.registerMetrics()
	access := auth.Access{AdoptUnowned: set.AdoptUnowned}
	conversations.Register(s.api, conversations.Options{
		DB: s.hosted.DB, Lanes: &s.lanes,
		App: s.o.App, Manager: s.runs, Access: func() auth.Access { return access },
		Roots: func() []string { return set.FileRoots }, Jobs: s.hosted.Jobs, Seen: seen,
	})
	facts.Register(s.api, facts.Options{App: s.o.App, Access: access})
	openai.Register(s.api, openai.Options{App: s.o.App, Manager: s.runs, Lanes: &s.lanes, Seen: seen})
	enter := runs.Register(s.api, runs.Service{
		App: s.o.App, Manager: s.runs, Desk: s.hosted.Desk, Jobs: s.hosted.Jobs, Access: access, MaxPerSubject: set.Limits.MaxRunsPerSubject,
	})
	schedules.Register(s.api, schedules.Service{App: s.o.App, Schedules: s.o.App.Background.Schedules(s.hosted.Store, s.hosted.Runs), Access: access})
	for method, summary := range map[string]string{http.MethodGet: "Show a question to who has its link", http.MethodPost: "Answer the question of a link"} {
		rest.MountAs[struct {
			Token string `path:"token" doc:"of the link"`
		}](s.api, rest.Operation{Method: method, Path: answerPath + "{token}", Summary: summary, Tag: "Questions", Public: true}, answerPage{s.hosted})
	}
	hooks.Register(s.api, hooks.Options{Triggers: s.triggers, Entries: s.hosted.Store, Local: s.isLocal, Strange: s.strange, Log: s.o.Log})
	hooks.RegisterAlerts(s.api, s.alerts, s.hosted.Desk)
	page.Register(s.api)
	return s.offerMCP(ctx, access, enter)
}

// Reload replaces what may change while the server runs by what the configuration says now. An error leaves
// all as it was. The end of ctx ends that the keys of an issuer are fetched. There is one call of it at a time, and none after Shutdown.
// fixed are the names of settings that have changed and need a restart.
func (s *Server) Reload(ctx context.Context) (fixed []string, err error) {
	defer func() { s.noteReload(fixed, err) }()
	c, _, err := config.Load(s.o.App.Paths, s.o.App.Env)
	if err != nil {
		return nil, err
	}
	now := s.settings.Load()
	if now.keys != nil && c.Blank { // it is being replaced, or was lost: not a wish that no key is valid
		return nil, fault.New(fault.Config, "%s is missing or empty, so the keys and settings stay as they are", c.File).
			WithHint("restore it and send SIGHUP again; to serve without keys, restart the server")
	}
	next, err := newSettings(c.API, now, s.o.Log)
	if err != nil {
		return nil, err
	}
	fixed = s.first.needRestart(next)
	first := s.o.App.Config
	for _, part := range []struct {
		name      string
		now, then any
	}{{"triggers", first.Triggers, c.Triggers}, {"alerts", first.Alerts, c.Alerts}, {"retention", first.Retention, c.Retention}} {
		if !reflect.DeepEqual(part.now, part.then) {
			fixed = append(fixed, part.name)
		}
	}
	if now.keys == nil {
		next.keys, next.published, next.Auth.Mode = nil, nil, now.Auth.Mode
	} else if next.keys == nil { // it continues to ask for keys, and removed keys are no longer valid
		next.keys, next.Auth.Mode = auth.New(next.Auth.Keys), config.AuthStaticKeys
	}
	s.settings.Store(next)
	s.o.App.Background.Reschedule(c.Schedules)
	s.fetch(ctx, next.published)
	if next.keys != nil {
		s.api.Revoke(next.keys.Has)
	}
	s.api.SetLimits(next.limits())
	if s.hosted.Spending.SetLimits(next.Spending) {
		s.resumeSpent(ctx)
	}
	if err := s.o.App.SetLevel(next.API.LogLevel); err != nil {
		s.o.Log.Warn(err.Error())
	}
	ctx, done := context.WithTimeout(ctx, sinkPatience)
	defer done()
	if err := s.useAudit(ctx, next.Audit); err != nil {
		s.o.Log.Error("the old audit sink was left", "error", err)
	}
	return fixed, nil
}

// resumeSpent resumes the runs that were suspended for a limit of spending, as far as the present limits allow it.
func (s *Server) resumeSpent(ctx context.Context) {
	err := s.runs.Free(ctx, func(i run.Info) error { return s.hosted.Spending.Check(ctx, i) })
	if err != nil && ctx.Err() == nil {
		s.o.Log.Error("runs that wait for a limit of spending were not resumed", "error", err)
	}
}

// fetch starts to fetch keys instead of the previous ones, until the server ends. Nil fetches none.
func (s *Server) fetch(ctx context.Context, keys *issuer.Keys) {
	if keys == s.fetched {
		return
	}
	if s.unfetch != nil {
		s.unfetch()
	}
	s.fetched, s.unfetch = keys, nil
	if keys == nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // ends with unfetch, which waits for it
		defer close(done)
		keys.Run(ctx)
	}()
	s.unfetch = func() {
		cancel()
		<-done
	}
}

// forced is how long requests may take to end once they are canceled: their children have to be killed, and
// what came is kept.
const forced = 4 * time.Second

// Shutdown ends the server. New requests are refused, those at work may finish for the time that the
// configuration grants, and are canceled then. It returns when all have ended, or are given up. The end of
// ctx cancels them at once.
func (s *Server) Shutdown(ctx context.Context) error {
	s.http.SetKeepAlivesEnabled(false)
	if s.offered != nil {
		s.offered.Leave()
	}
	s.api.Drain()
	s.automation.end()
	grace, done := context.WithTimeout(ctx, s.settings.Load().ShutdownGrace)
	var working sync.WaitGroup
	working.Go(func() { s.runs.Shutdown(grace) }) // it ends what watchers wait for
	s.api.Idle(grace)
	working.Wait()
	done()
	s.cancel(rest.ErrStopping())
	if s.offered != nil {
		s.offered.Close()
	}
	s.fetch(ctx, nil)
	<-s.resumed
	s.unasked.end()
	end, done := context.WithTimeout(context.WithoutCancel(ctx), forced)
	defer done()
	err := errors.Join(s.api.Stop(end), s.http.Shutdown(end))
	s.stores.background.Wait()
	err = errors.Join(err, s.hosted.Close())
	if err != nil {
		_ = s.http.Close()
	}
	s.scraped.close()
	err = errors.Join(err, s.kept.Close())
	if lost := s.useAudit(end, nil); lost != nil {
		s.o.Log.Error("the audit record is not whole", "error", lost)
		s.o.Warn("the audit record is not whole: " + lost.Error())
	}
	if served := <-s.served; err == nil && !errors.Is(served, http.ErrServerClosed) {
		err = served
	}
	return err
}
