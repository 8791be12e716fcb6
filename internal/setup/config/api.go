package config

import (
	"net/netip"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/service/auth"
	"loki/internal/workflow/run/spending"
)

// API is the section api of config.yaml: how the program serves others. The zero value is
// not one, see [DefaultAPI].
type API struct {
	Enabled           bool
	ListenAddr        string // host:port, port 0 for any; "" if the file does not say
	PublicURL         string // that users reach the server at, such as behind a proxy; "" for the address it listens at
	MetricsListenAddr string // likewise; "" for the address of all else
	Auth              APIAuth
	CORS              APICORS
	Limits            APILimits
	OpenAI            APIOpenAI
	RequestTimeout    time.Duration // without progress of a request
	ShutdownGrace     time.Duration // for requests at work when the server is asked to end; may be 0
	ForceHTTPS        bool          // clients are to use https only
	TrustedProxies    []netip.Prefix
	LogFormat         string // "json" or "text"
	LogLevel          string // of the server's log, unless LOKI_LOG_LEVEL is set; "" for the default
	Audit             *APIAudit
	FileRoots         []string    // absolute directories below which requests may name files
	AdoptUnowned      bool        // all may see and claim what has no owner
	ResumeOnStart     bool        // runs that a server left running resume
	Memory            chat.Memory // what models may do with what is remembered for those who ask; off unless the file says it
	Webhooks          []Webhook
	Spending          spending.Limits // what all runs may use; nil for no limit
}

// DefaultListenAddr is where a server listens unless the configuration says it.
const DefaultListenAddr = "127.0.0.1:3400"

// The modes of [APIAuth].
const (
	AuthDisabled   = "disabled"
	AuthStaticKeys = "static_keys"
	AuthJWT        = "jwt"
)

// APIAuth says how a server knows who sends a request.
type APIAuth struct {
	Mode string // AuthDisabled if the file does not say
	Keys []auth.Key
	JWT  *APIJWT // set with mode AuthJWT
}

// APIJWT says which tokens are accepted.
type APIJWT struct {
	Issuer, Audience string
	JWKSURL          string
	Refresh          time.Duration
	SubjectClaim     string
	ScopesClaim      string
	GroupsClaim      string
	Leeway           time.Duration
}

// APICORS says which pages in a browser may use the server.
type APICORS struct {
	AllowedOrigins   []string // such as "https://example.com", or "*" for all
	AllowCredentials bool
}

// APILimits bounds what requests may take.
type APILimits struct {
	MaxBodyBytes          int // of requests with messages or attachments; at least 1
	MaxConcurrentRequests int // at least 1
	PerSubjectConcurrency int // at least 1
	RateLimitPerMinute    int // 0 for as many as come
	RateLimitBurst        int // at least 1
	MaxConcurrentRuns     int // that work at once; at least 1
	MaxRunsPerSubject     int // that work or wait to; 0 for as many as come
}

// APIOpenAI is about the endpoints that clients of OpenAI know.
type APIOpenAI struct {
	RefuseUnknown bool // members of requests that they do not know are errors
}

// The sinks of [APIAudit].
const (
	AuditStderr = "stderr"
	AuditFile   = "file"
	AuditSyslog = "syslog"
)

// APIAudit says where the record of who did what goes.
type APIAudit struct {
	Sink     string
	Path     string // of a file
	MaxBytes int    // of a file, after which the next begins
	Keep     int    // of full files
}

// Webhook is an address that is notified of what happens in runs.
type Webhook struct {
	Agent  string   // whose runs; "" for those of all
	URL    string   // may refer to secrets
	Events []string // nil for the ones that the sender chooses
	Secret string   // that signs what is sent; may refer to secrets
}

// DefaultAPI returns the settings of a server whose configuration has no section api.
func DefaultAPI() *API {
	return &API{
		Enabled: true,
		Auth:    APIAuth{Mode: AuthDisabled},
		Limits: APILimits{
			MaxBodyBytes: 16 << 20, MaxConcurrentRequests: 64, PerSubjectConcurrency: 8, RateLimitBurst: 10, MaxConcurrentRuns: 16,
		},
		RequestTimeout: 300 * time.Second,
		ShutdownGrace:  30 * time.Second,
		LogFormat:      "json",
		ResumeOnStart:  true,
		Memory:         chat.MemoryOff,
	}
}
