package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/frontend/server/rest"
	"loki/internal/llm/event/telemetry/metrics"
	"loki/internal/service/auth"
)

// meter has the metrics of a server. What happens is counted when it does, what is at work is looked at when the metrics
// are read.
type meter struct {
	registry metrics.Registry
	events   *metrics.Events

	requests, seconds, inFlight, refused, limited, created *metrics.Family // as they happen
	runs, sessions, pool, spawns, evictions, lost          *metrics.Family // as they are
	goroutines, heap                                       *metrics.Family
	acquired                                               *metrics.Family
}

// newMeter returns the metrics of a server that started at a time.
func newMeter(started time.Time) *meter {
	m := new(meter)
	r := &m.registry
	m.requests = r.Counter("http_requests_total", "Requests, without those of probes.", "route", "method", "status")
	m.seconds = r.Histogram("http_request_duration_seconds", "How long requests took; of streams, until the end of the stream.", metrics.Seconds(), "route", "method")
	m.inFlight = r.Gauge("http_requests_in_flight", "Requests that are being answered, streams included.")
	m.refused = r.Counter("auth_failures_total", "Requests that were refused for their key.", "reason")
	m.limited = r.Counter("rate_limit_rejections_total", "Requests that were refused because there were too many.")
	m.sessions = r.Gauge("sessions_active", "Sessions that a request is changing, or waits to.")
	m.created = r.Counter("sessions_created_total", "Sessions that were created.")
	m.runs = r.Gauge("runs", "Runs at work in this process.", "status")
	m.events = metrics.NewEvents(r)
	m.pool = r.Gauge("mcp_pool_size", "Connections to MCP servers.", "state")
	m.acquired = r.Histogram("mcp_acquire_latency_seconds", "How long it took to get a connection to an MCP server.",
		[]float64{0.0001, 0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30})
	m.spawns = r.Counter("mcp_spawns_total", "Connections to MCP servers that were made.")
	m.evictions = r.Counter("mcp_idle_evictions_total", "Connections that were closed because they were idle for too long.")
	m.lost = r.Counter("audit_lines_lost_total", "Lines of the audit record that were lost.")
	m.goroutines = r.Gauge("go_goroutines", "Goroutines of the process.")
	m.heap = r.Gauge("go_memstats_heap_inuse_bytes", "Memory of the process that holds values.")
	r.Gauge("process_start_time_seconds", "When the server started, in Unix time.").Set(float64(started.UnixMilli()) / 1000)
	r.Gauge("loki_build_info", "Always 1.", "version", "goversion").Set(1, app.Version, runtime.Version())
	return m
}

// methods are the methods that have a label of their own. Clients may send any word.
var methods = map[string]bool{
	http.MethodGet: true, http.MethodHead: true, http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true, http.MethodDelete: true, http.MethodOptions: true,
}

// count counts a request that was answered.
func (m *meter) count(r *http.Request, o rest.Outcome, status int, took time.Duration) {
	route, method := o.Route, r.Method
	if route == "" {
		route = metrics.Other
	}
	if !methods[method] {
		method = metrics.Other
	}
	m.requests.Add(1, route, method, strconv.Itoa(status))
	m.seconds.Observe(took.Seconds(), route, method)
	switch {
	case o.Refusal == rest.RefusedKey:
		m.refused.Add(1, o.Reason)
	case o.Refusal == rest.RefusedLimit:
		m.limited.Add(1)
	case o.NewSession && o.Err == nil:
		m.created.Add(1)
	}
}

// metrics returns the metrics as they are now.
func (s *Server) metrics() []byte {
	m := s.meter
	queued := 0
	active := s.runs.Active()
	for _, a := range active {
		if a.Queued {
			queued++
		}
	}
	m.runs.Set(float64(queued), "queued")
	m.runs.Set(float64(len(active)-queued), "running")
	m.sessions.Set(float64(s.lanes.Count()))
	pool := s.o.App.MCP.Pool()
	m.pool.Set(float64(pool.Idle), "idle")
	m.pool.Set(float64(pool.InUse), "in_use")
	m.spawns.Set(float64(pool.Started))
	m.evictions.Set(float64(pool.IdleEvictions))
	if log := s.audit.Load(); log != nil {
		m.lost.Set(float64(log.LostLines()))
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	m.heap.Set(float64(memory.HeapInuse))
	m.goroutines.Set(float64(runtime.NumGoroutine()))
	return []byte(s.o.App.Hide(string(m.registry.Text())))
}

// metricsPath is where the metrics are.
const metricsPath = "/metrics"

// registerMetrics adds the endpoint of the metrics, unless they have a port of their own.
func (s *Server) registerMetrics() {
	if s.first.MetricsListenAddr != "" {
		return
	}
	op := rest.Operation{
		Method: http.MethodGet, Path: metricsPath, Summary: "Metrics in the text format of Prometheus", Tag: "Server", Scope: auth.AdminMetrics, Watch: true, // which takes no slot
	}
	rest.Register(s.api, op, func(context.Context, *struct{}) (*rest.Reply, error) {
		return rest.Bytes(0, metrics.ContentType, s.metrics()), nil
	})
}

// metricsServer serves the metrics at an address of their own, without keys. It is nil if there is none.
type metricsServer struct {
	http     *http.Server
	listener net.Listener
	served   chan struct{} // closed when it has ended; nil before it has begun
}

// listenForMetrics listens for readers of the metrics at the address in the configuration. Without keys it must be one that only
// this machine reaches.
func (s *Server) listenForMetrics(ctx context.Context) (*metricsServer, error) {
	address := s.first.MetricsListenAddr
	if address == "" {
		return nil, nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "api.metrics_listen_addr")
	}
	local := s.first.isLoopback(ctx, host)
	if !local && s.first.keys == nil {
		return nil, fault.New(fault.Config, "api.metrics_listen_addr: a server without keys serves metrics to this machine only, not at %s", address).
			WithHint("make a key with loki --key add NAME, or use an address such as 127.0.0.1:9464")
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fault.Wrap(fault.Failure, err, "cannot serve metrics at %s", address).WithHint("end the program that listens there, or choose another api.metrics_listen_addr")
	}
	if !local {
		s.o.Warn("metrics at " + l.Addr().String() + " need no key: anyone who can reach the address can read the names of agents and models, and what they cost")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+metricsPath, func(w http.ResponseWriter, r *http.Request) {
		if local && !isLoopbackName(r.Host) { // a page of another site whose name points here
			http.Error(w, "metrics are for this machine only", http.StatusForbidden)
			return
		}
		s.secure(w.Header(), s.first)
		w.Header().Set("Content-Type", metrics.ContentType)
		_, _ = w.Write(s.metrics())
	})
	return &metricsServer{listener: l, http: &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}}, nil
}

// serve begins to answer.
func (m *metricsServer) serve() {
	if m == nil {
		return
	}
	m.served = make(chan struct{})
	go func() { // ends with close, which waits for it
		defer close(m.served)
		_ = m.http.Serve(m.listener)
	}()
}

// close ends it at once.
func (m *metricsServer) close() {
	if m == nil {
		return
	}
	_ = m.http.Close()
	if m.served == nil {
		_ = m.listener.Close()
		return
	}
	<-m.served
}
