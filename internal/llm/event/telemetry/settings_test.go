package telemetry

import (
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loki/internal/base/fault"
	"loki/internal/llm/event"
)

func TestAsked(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318"
	for _, tt := range []struct {
		name string
		vars []string
		on   bool
	}{
		{name: "nothing"},
		{name: "only_a_name", vars: []string{"OTEL_SERVICE_NAME=x", "TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
		{name: "endpoint", vars: []string{endpoint}, on: true},
		{name: "endpoint_for_traces", vars: []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://localhost:4318/x"}, on: true},
		{name: "exporter", vars: []string{"OTEL_TRACES_EXPORTER=otlp"}, on: true},
		{name: "no_exporter", vars: []string{endpoint, "OTEL_TRACES_EXPORTER=none"}},
		{name: "disabled", vars: []string{endpoint, "OTEL_SDK_DISABLED=TRUE"}},
		{name: "not_disabled", vars: []string{endpoint, "OTEL_SDK_DISABLED=1"}, on: true},
		{name: "disabled_wins_over_mistakes", vars: []string{"OTEL_TRACES_EXPORTER=zipkin", "OTEL_SDK_DISABLED=true"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tracer, err := Start(t.Context(), environment(tt.vars...), "")
			if err != nil {
				t.Fatal(err)
			}
			if (tracer != nil) != tt.on {
				t.Errorf("tracer %v, want %v", tracer != nil, tt.on)
			}
			if err := tracer.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	for _, tt := range []struct{ name, variable, want string }{
		{"exporter", "OTEL_TRACES_EXPORTER=zipkin", `OTEL_TRACES_EXPORTER: "zipkin" is neither otlp nor none`},
		{"protocol", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "traces cannot be sent as grpc, only as http/protobuf"},
		{"endpoint", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=user:hunter2@host", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not an address that begins with http:// or https://"},
		{"timeout", "OTEL_EXPORTER_OTLP_TIMEOUT=soon", `OTEL_EXPORTER_OTLP_TIMEOUT: "soon" is not a number of milliseconds above 0`},
		{"compression", "OTEL_EXPORTER_OTLP_COMPRESSION=zstd", `OTEL_EXPORTER_OTLP_COMPRESSION: "zstd" is neither gzip nor none`},
		{"sampler", "OTEL_TRACES_SAMPLER=jaeger_remote", `OTEL_TRACES_SAMPLER: "jaeger_remote" is not one of always_on, always_off, traceidratio and the same after parentbased_`},
		{"ratio", "OTEL_TRACES_SAMPLER_ARG=NaN", `OTEL_TRACES_SAMPLER_ARG: "NaN" is not a number from 0 to 1`},
		{"certificate", "OTEL_EXPORTER_OTLP_CERTIFICATE=settings.go", "OTEL_EXPORTER_OTLP_CERTIFICATE: settings.go has no certificate in PEM form"},
		{"client_certificate", "OTEL_EXPORTER_OTLP_CLIENT_KEY=settings.go", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY: open : no such file or directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			vars := []string{tt.variable, "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318"}
			if tt.name == "ratio" {
				vars = append(vars, "OTEL_TRACES_SAMPLER=traceidratio")
			}
			tracer, err := Start(t.Context(), environment(vars...), "")
			if tracer != nil {
				t.Error("there is a tracer")
			}
			if err == nil || err.Error() != tt.want || fault.CodeOf(err) != fault.Config {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			if strings.Contains(err.Error()+fault.HintOf(err), "hunter2") {
				t.Error("a password is shown")
			}
		})
	}
}

func TestEndpoint(t *testing.T) {
	for _, tt := range []struct {
		name string
		vars []string
		want string
	}{
		{"default", []string{"OTEL_TRACES_EXPORTER=otlp"}, "http://localhost:4318/v1/traces"},
		{"base", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://host"}, "https://host/v1/traces"},
		{"base_with_path", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://host/otlp/?key=1"}, "https://host/otlp/v1/traces?key=1"},
		{"whole", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://host", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://other/x"}, "http://other/x"},
		{"whole_without_path", []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://other:1"}, "http://other:1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _, err := readSettings(environment(tt.vars...), traces, "")
			if err != nil {
				t.Fatal(err)
			}
			if got := s.url.String(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestRequest shows what a collector learns besides the spans.
func TestRequest(t *testing.T) {
	sink := newSink(t)
	tracer := start(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+sink.URL, "OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_EXPORTER_OTLP_TIMEOUT=7000",
		"OTEL_EXPORTER_OTLP_HEADERS=X-Key=a%20b%3D, authorization = Basic eA==,broken",
		"OTEL_RESOURCE_ATTRIBUTES=service.name=ignored,deployment.environment.name=test%2C1,service.version=9", "OTEL_SERVICE_NAME=nightly")
	if tracer.exporter.client.Timeout != 7*time.Second {
		t.Errorf("timeout %s", tracer.exporter.client.Timeout)
	}
	s := newStory(t, tracer.Emitter())
	s.emit(t.Context(), event.Source{Agent: "not \xff text"}, event.Started{}, event.Finished{})
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := sink.requests[0]
	if r.URL.Path != "/v1/traces" || r.Method != http.MethodPost {
		t.Errorf("%s %s", r.Method, r.URL)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip", "User-Agent": "loki/1.2.3",
		"X-Key": "a b=", "Authorization": "Basic eA==",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"service.name": "nightly", "service.version": "9", "telemetry.sdk.name": "loki", "telemetry.sdk.language": "go",
		"telemetry.sdk.version": "1.2.3", "deployment.environment.name": "test,1",
	} {
		if got := sink.resource[name]; got != want {
			t.Errorf("resource attribute %s is %q, want %q", name, got, want)
		}
	}
	if sink.scope != "loki 1.2.3" {
		t.Errorf("scope %q", sink.scope)
	}
	if got := sink.spans[0].Name; got != "invoke_agent not \uFFFD text" {
		t.Errorf("name %q", got)
	}
}

func TestCertificate(t *testing.T) {
	sink := &sink{t: t}
	sink.Server = httptest.NewUnstartedServer(sink)
	sink.Config.ErrorLog = log.New(io.Discard, "", 0) // it tells of the client that does not trust it
	sink.StartTLS()
	t.Cleanup(sink.Close)
	path := filepath.Join(t.TempDir(), "ca.pem")
	writePEM(t, path, sink.Certificate())
	for _, tt := range []struct {
		name, variable string
		ok             bool
	}{
		{"trusted", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE=" + path, true},
		{"unknown", "X=", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tracer := start(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+sink.URL, tt.variable)
			newStory(t, tracer.Emitter()).emit(t.Context(), top, event.Started{}, event.Finished{})
			if err := tracer.Shutdown(t.Context()); (err == nil) != tt.ok {
				t.Errorf("error %v", err)
			}
		})
	}
}

func writePEM(t *testing.T, path string, cert *x509.Certificate) {
	t.Helper()
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSampler(t *testing.T) {
	low, high := [16]byte{8: 0x10}, [16]byte{8: 0xf0}
	yes, no := &span{sampled: true}, &span{}
	for _, tt := range []struct {
		name, sampler, arg string
		trace              [16]byte
		parent             *span
		want               bool
	}{
		{name: "default", trace: high, want: true},
		{name: "default_follows_the_parent", trace: low, parent: no},
		{name: "on", sampler: "always_on", trace: high, parent: no, want: true},
		{name: "off", sampler: "always_off", trace: low, parent: yes},
		{name: "off_without_parent", sampler: "parentbased_always_off", trace: low},
		{name: "off_with_parent", sampler: "parentbased_always_off", trace: high, parent: yes, want: true},
		{name: "ratio_below", sampler: "traceidratio", arg: "0.5", trace: low, want: true},
		{name: "ratio_above", sampler: "traceidratio", arg: "0.5", trace: high},
		{name: "ratio_none", sampler: "traceidratio", arg: "0", trace: [16]byte{}},
		{name: "ratio_default", sampler: "parentbased_traceidratio", trace: high, want: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := parseSampler(tt.sampler, tt.arg)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.sample(tt.trace, tt.parent); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestTraceparent(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, tt := range []struct {
		name, text  string
		ok, sampled bool
	}{
		{"sampled", good, true, true},
		{"not_sampled", strings.TrimSuffix(good, "1") + "0", true, false},
		{"later_version", "01" + good[2:] + "-more", true, true},
		{"empty", "", false, false},
		{"version_ff", "ff" + good[2:], false, false},
		{"too_long", good + "-more", false, false},
		{"upper_case", strings.ToUpper(good), false, false},
		{"no_hex", strings.Replace(good, "a", "g", 1), false, false},
		{"no_trace", "00-00000000000000000000000000000000-b7ad6b7169203331-01", false, false},
		{"no_span", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := parseTraceparent(tt.text, "")
			if (s != nil) != tt.ok {
				t.Fatalf("got %+v", s)
			}
			if s != nil && s.sampled != tt.sampled {
				t.Errorf("sampled %v", s.sampled)
			}
		})
	}
}

func FuzzTraceparent(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Add("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-x")
	f.Fuzz(func(t *testing.T, text string) {
		if s := parseTraceparent(text, ""); s != nil && (s.trace == [16]byte{} || s.id == [8]byte{}) {
			t.Errorf("%q has ids of zeros", text)
		}
	})
}

func FuzzReadResponse(f *testing.F) {
	f.Add(appendBytes(nil, 1, appendText(appendVarint(nil, 1, 2), 2, "why")))
	f.Add([]byte{0x0a, 0xff})
	f.Add([]byte{0x0d, 1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		if n, _, _ := readResponse(data); n < 0 {
			t.Errorf("%d spans rejected", n)
		}
	})
}
