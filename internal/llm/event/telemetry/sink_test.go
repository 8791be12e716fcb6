package telemetry

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// sink is a collector. It decodes what it gets with the official message types.
type sink struct {
	t *testing.T
	*httptest.Server

	mu       sync.Mutex
	requests []*http.Request
	spans    []*tracepb.Span
	resource map[string]string
	scope    string
}

func newSink(t *testing.T) *sink {
	s := &sink{t: t}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	}
	// A TracesData has the fields of an ExportTraceServiceRequest.
	var data tracepb.TracesData
	if err == nil {
		err = proto.Unmarshal(body, &data)
	}
	if err == nil && len(data.ProtoReflect().GetUnknown()) > 0 {
		err = fmt.Errorf("unknown fields")
	}
	if err != nil {
		s.t.Errorf("request: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	for _, rs := range data.ResourceSpans {
		s.resource = attributes(rs.Resource.Attributes)
		for _, ss := range rs.ScopeSpans {
			s.scope = ss.Scope.Name + " " + ss.Scope.Version
			s.spans = append(s.spans, ss.Spans...)
		}
	}
}

// received returns the spans that have arrived.
func (s *sink) received() []*tracepb.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.spans)
}

func attributes(list []*commonpb.KeyValue) map[string]string {
	m := make(map[string]string)
	for _, kv := range list {
		m[kv.Key] = textOf(kv.Value)
	}
	return m
}

func textOf(v *commonpb.AnyValue) string {
	switch v := v.Value.(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *commonpb.AnyValue_BoolValue:
		return fmt.Sprint(v.BoolValue)
	case *commonpb.AnyValue_ArrayValue:
		var items []string
		for _, item := range v.ArrayValue.Values {
			items = append(items, textOf(item))
		}
		return "[" + strings.Join(items, " ") + "]"
	}
	return fmt.Sprintf("%T", v.Value)
}

// tree writes spans as an indented tree, each level by begin and then by name: name,
// length, attributes, error, marks.
func tree(spans []*tracepb.Span) string {
	children := make(map[string][]*tracepb.Span)
	ids := make(map[string]bool)
	for _, s := range spans {
		ids[hex.EncodeToString(s.SpanId)] = true
	}
	for _, s := range spans {
		parent := hex.EncodeToString(s.ParentSpanId)
		if !ids[parent] {
			parent = ""
		}
		children[parent] = append(children[parent], s)
	}
	var b strings.Builder
	var write func(parent, indent string)
	write = func(parent, indent string) {
		level := children[parent]
		slices.SortStableFunc(level, func(a, b *tracepb.Span) int {
			if a.StartTimeUnixNano != b.StartTimeUnixNano {
				return int(int64(a.StartTimeUnixNano - b.StartTimeUnixNano))
			}
			return strings.Compare(a.Name, b.Name)
		})
		for _, s := range level {
			fmt.Fprintf(&b, "%s%s (%dms)", indent, s.Name, (s.EndTimeUnixNano-s.StartTimeUnixNano)/1e6)
			for _, kv := range s.Attributes {
				fmt.Fprintf(&b, " %s=%s", kv.Key, textOf(kv.Value))
			}
			if s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
				fmt.Fprintf(&b, " FAILED%q", s.Status.Message)
			}
			for _, ev := range s.Events {
				fmt.Fprintf(&b, " @%s%v", ev.Name, attributes(ev.Attributes))
			}
			b.WriteByte('\n')
			write(hex.EncodeToString(s.SpanId), indent+"  ")
		}
	}
	write("", "")
	return b.String()
}

// environment is a getenv of the given NAME=value texts.
func environment(vars ...string) func(string) string {
	return func(name string) string {
		for _, v := range vars {
			if n, value, _ := strings.Cut(v, "="); n == name {
				return value
			}
		}
		return ""
	}
}

func start(t *testing.T, vars ...string) *Tracer {
	t.Helper()
	tracer, err := Start(t.Context(), environment(vars...), "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if tracer == nil {
		t.Fatal("no tracer")
	}
	return tracer
}
