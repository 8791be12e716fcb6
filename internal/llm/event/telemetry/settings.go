package telemetry

import (
	"cmp"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/fault"
)

// settings are what the variables say. The names are those of
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ and
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/.
type settings struct {
	url      *url.URL
	headers  http.Header
	timeout  time.Duration // of one request
	gzip     bool
	resource []attr
	version  string // of the program
	sampler  sampler
	parent   *span         // from TRACEPARENT, nil for none
	content  bool          // prompts, replies and error texts are sent
	interval time.Duration // between two readings of metrics

	signal  signal
	implied bool // no variable is about this signal, only about all of them

	certificate, clientCertificate, clientKey string // paths of PEM files
}

const (
	defaultEndpoint = "http://localhost:4318"
	defaultTimeout  = 10 * time.Second
	defaultInterval = time.Minute
)

// signal is what is sent, as names of variables spell it.
type signal string

const (
	traces  signal = "TRACES"
	figures signal = "METRICS"
)

// name returns the signal as it is called in texts and paths.
func (s signal) name() string { return strings.ToLower(string(s)) }

// items returns what a request has of the signal.
func (s signal) items() string {
	if s == traces {
		return "spans"
	}
	return s.name()
}

// readSettings reports on = false if the signal is not asked for.
func readSettings(getenv func(string) string, of signal, version string) (s settings, on bool, err error) {
	get := func(name string) string { return strings.TrimSpace(getenv(name)) }
	// otlp looks up the variable for the signal before the one for all.
	otlp := func(name string) string {
		return cmp.Or(get("OTEL_EXPORTER_OTLP_"+string(of)+"_"+name), get("OTEL_EXPORTER_OTLP_"+name))
	}
	if on, err = isAsked(get, of); err != nil || !on {
		return s, false, err
	}
	if p := otlp("PROTOCOL"); p != "" && p != "http/protobuf" {
		return s, false, fault.New(fault.Config, "%s cannot be sent as %s, only as http/protobuf", of.name(), p).
			WithHint("set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf and the endpoint of the collector's HTTP receiver, usually port 4318")
	}
	s = settings{
		version: version, timeout: defaultTimeout, interval: defaultInterval, headers: make(http.Header), signal: of,
		implied:     get("OTEL_"+string(of)+"_EXPORTER") == "" && get("OTEL_EXPORTER_OTLP_"+string(of)+"_ENDPOINT") == "",
		certificate: otlp("CERTIFICATE"), clientCertificate: otlp("CLIENT_CERTIFICATE"), clientKey: otlp("CLIENT_KEY"),
		content: strings.EqualFold(get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"), "true"),
		parent:  parseTraceparent(get("TRACEPARENT"), get("TRACESTATE")),
	}
	if s.url, err = endpoint(get, of); err != nil {
		return s, false, err
	}
	for _, h := range pairs(otlp("HEADERS")) {
		s.headers.Set(h.key, h.value.(string))
	}
	if err := setMilliseconds(&s.timeout, "OTEL_EXPORTER_OTLP_TIMEOUT", otlp("TIMEOUT")); err != nil {
		return s, false, err
	}
	switch c := otlp("COMPRESSION"); c {
	case "", "none":
	case "gzip":
		s.gzip = true
	default:
		return s, false, fault.New(fault.Config, "OTEL_EXPORTER_OTLP_COMPRESSION: %q is neither gzip nor none", c)
	}
	s.resource = resource(get, version)
	if of == figures {
		return s, true, s.setMetrics(get)
	}
	if s.sampler, err = parseSampler(get("OTEL_TRACES_SAMPLER"), get("OTEL_TRACES_SAMPLER_ARG")); err != nil {
		return s, false, err
	}
	return s, true, nil
}

// setMilliseconds sets d to what a variable says, unless that is nothing.
func setMilliseconds(d *time.Duration, name, text string) error {
	if text == "" {
		return nil
	}
	ms, err := strconv.Atoi(text)
	if err != nil || ms <= 0 {
		return fault.New(fault.Config, "%s: %q is not a number of milliseconds above 0", name, text)
	}
	*d = time.Duration(ms) * time.Millisecond
	return nil
}

// setMetrics sets what is about metrics only. Each process is an instance of the service, so that a collector adds up what they count.
func (s *settings) setMetrics(get func(string) string) error {
	const preference = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
	if p := get(preference); p != "" && !strings.EqualFold(p, "cumulative") {
		return fault.New(fault.Config, "%s: metrics are sent as cumulative only, not as %q", preference, p).
			WithHint("have the collector make them %s, by its processor cumulativetodelta", p)
	}
	if !slices.ContainsFunc(s.resource, func(a attr) bool { return a.key == serviceInstance }) {
		s.resource = append(s.resource, attr{serviceInstance, rand.Text()})
	}
	return setMilliseconds(&s.interval, "OTEL_METRIC_EXPORT_INTERVAL", get("OTEL_METRIC_EXPORT_INTERVAL"))
}

const serviceInstance = "service.instance.id"

// isAsked reports whether the variables ask for a signal.
func isAsked(get func(string) string, of signal) (bool, error) {
	if strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	name := "OTEL_" + string(of) + "_EXPORTER"
	switch kind := get(name); kind {
	case "":
		return get("OTEL_EXPORTER_OTLP_"+string(of)+"_ENDPOINT") != "" || get("OTEL_EXPORTER_OTLP_ENDPOINT") != "", nil
	case "otlp":
		return true, nil
	case "none":
		return false, nil
	default:
		return false, fault.New(fault.Config, "%s: %q is neither otlp nor none", name, kind)
	}
}

// endpoint is where a signal is posted: the variable for it is the whole address, the
// one for all signals its beginning.
func endpoint(get func(string) string, of signal) (*url.URL, error) {
	name, own := "OTEL_EXPORTER_OTLP_"+string(of)+"_ENDPOINT", "/v1/"+of.name()
	text, path := get(name), ""
	if text == "" {
		name = "OTEL_EXPORTER_OTLP_ENDPOINT"
		text, path = cmp.Or(get(name), defaultEndpoint), own
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		// The text may hold a password, so that it is not shown.
		return nil, fault.New(fault.Config, "%s is not an address that begins with http:// or https://", name).
			WithHint("for example %s=%s", name, defaultEndpoint+strings.TrimPrefix(own, path))
	}
	if path != "" {
		u = u.JoinPath(path)
	}
	return u, nil
}

// address returns the address without credentials, for messages.
func (s settings) address() string {
	u := *s.url
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// resource describes the program that is watched.
func resource(get func(string) string, version string) []attr {
	attrs := []attr{{"service.name", "loki"}}
	set := func(key string, value any) {
		for i := range attrs {
			if attrs[i].key == key {
				attrs[i].value = value
				return
			}
		}
		attrs = append(attrs, attr{key, value})
	}
	if version != "" {
		set("service.version", version)
	}
	set("telemetry.sdk.name", "loki")
	set("telemetry.sdk.language", "go")
	if version != "" {
		set("telemetry.sdk.version", version)
	}
	for _, a := range pairs(get("OTEL_RESOURCE_ATTRIBUTES")) {
		set(a.key, a.value)
	}
	if name := get("OTEL_SERVICE_NAME"); name != "" {
		set("service.name", name)
	}
	return attrs
}

// pairs reads a list such as "a=1,b=two%20words", as in W3C baggage. Entries that are not
// pairs are left out.
func pairs(text string) []attr {
	var list []attr
	for entry := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(entry, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || key == "" {
			continue
		}
		if decoded, err := url.PathUnescape(value); err == nil {
			value = decoded
		}
		list = append(list, attr{key, value})
	}
	return list
}

// transport returns what sends requests, with the certificates of the settings.
func (s settings) transport() (http.RoundTripper, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 1
	if s.certificate == "" && s.clientCertificate == "" && s.clientKey == "" {
		return t, nil
	}
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if s.certificate != "" {
		data, err := os.ReadFile(s.certificate)
		if err != nil {
			return nil, fault.Wrap(fault.Config, err, "OTEL_EXPORTER_OTLP_CERTIFICATE")
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(data) {
			return nil, fault.New(fault.Config, "OTEL_EXPORTER_OTLP_CERTIFICATE: %s has no certificate in PEM form", s.certificate)
		}
		t.TLSClientConfig.RootCAs = pool
	}
	if s.clientCertificate != "" || s.clientKey != "" {
		pair, err := tls.LoadX509KeyPair(s.clientCertificate, s.clientKey)
		if err != nil {
			return nil, fault.Wrap(fault.Config, err, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY")
		}
		t.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}
