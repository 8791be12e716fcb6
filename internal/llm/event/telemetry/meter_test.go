package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// figuresSink is a collector of metrics. It decodes what it gets with the official message types.
type figuresSink struct {
	*httptest.Server
	requests chan *metricspb.MetricsData
	status   int
	body     []byte // of the last request
}

func newFiguresSink(t *testing.T, status int) *figuresSink {
	s := &figuresSink{requests: make(chan *metricspb.MetricsData, 100), status: status}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data := new(metricspb.MetricsData) // it has the fields of an ExportMetricsServiceRequest
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(body, data)
		}
		if err != nil || r.URL.Path != "/v1/metrics" || len(data.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		s.body = body
		s.requests <- data
		w.WriteHeader(s.status)
	}))
	t.Cleanup(s.Close)
	return s
}

// lines writes metrics as text, ascending: name, unit, attributes, and the value or the count and the sum. Bounds and buckets have to fit.
func lines(t *testing.T, data *metricspb.MetricsData) []string {
	t.Helper()
	var list []string
	for _, m := range data.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		if m.Description == "" {
			t.Errorf("%s has no description", m.Name)
		}
		sum, h := m.GetSum(), m.GetHistogram()
		if sum.GetAggregationTemporality()+h.GetAggregationTemporality() != metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE || sum != nil && !sum.IsMonotonic {
			t.Errorf("%v", m)
		}
		add := func(attrs map[string]string, value string, start, end uint64) {
			if start == 0 || end < start {
				t.Errorf("%s from %d to %d", m.Name, start, end)
			}
			list = append(list, fmt.Sprintf("%s %s %v %s", m.Name, m.Unit, attrs, value))
		}
		for _, p := range sum.GetDataPoints() {
			add(attributes(p.Attributes), fmt.Sprint(p.GetAsInt()), p.StartTimeUnixNano, p.TimeUnixNano)
		}
		for _, p := range h.GetDataPoints() {
			n := uint64(0)
			for _, count := range p.BucketCounts {
				n += count
			}
			if n != p.Count || len(p.BucketCounts) != len(p.ExplicitBounds)+1 || !slices.IsSorted(p.ExplicitBounds) {
				t.Errorf("%v", p)
			}
			add(attributes(p.Attributes), fmt.Sprintf("%d: %.3f", p.Count, p.GetSum()), p.StartTimeUnixNano, p.TimeUnixNano)
		}
	}
	slices.Sort(list)
	return list
}

func startMeter(t *testing.T, vars ...string) *Meter {
	t.Helper()
	m, err := StartMeter(t.Context(), environment(vars...), "1.2.3")
	if err != nil || m == nil {
		t.Fatal(m, err)
	}
	return m
}

// busyRun has all that is counted: each event a millisecond after the one before.
func busyRun(ctx context.Context, s *story) {
	started := event.Started{Graph: "research", Origin: "schedule/morning", Late: 1.5}
	s.emit(ctx, top, started)
	plan := at(top, 1, "plan")
	streamed := reply
	streamed.Usage = chat.Usage{InputTokens: 12, CachedInputTokens: 5, CacheWriteTokens: 2, OutputTokens: 3, ReasoningTokens: 1}
	s.emit(ctx, plan, event.NodeStarted{NodeType: "llm", Visit: 1}, call, event.Reasoning{Text: "hm"}, event.Delta{Text: "se"}, event.Delta{Text: "cret"}, streamed)
	s.emit(ctx, plan, event.ToolCall{ID: "1", Name: "fs_cat", Arguments: "secret path"}, event.ToolResult{ID: "1", Name: "fs_cat", Text: "secret text"})
	s.emit(ctx, plan, event.ToolCall{ID: "1", Name: "fs_cat"}, event.ToolResult{ID: "1", Name: "fs_cat", Failed: true})
	s.emit(ctx, plan, call, event.Limited{Client: "claude", Model: "opus", Reason: "refused"}, event.Limited{Client: "claude", Model: "opus", Waited: 1, Refused: 2},
		event.Delta{Text: "whole"}, reply)
	s.emit(ctx, plan, call, event.Retry{Attempt: 1, Error: "secret answer"}, call, reply)
	finished := done
	finished.Duration = 250 * time.Millisecond
	s.emit(ctx, plan, event.NodeFinished{NodeType: "llm", Waiting: true}, finished)
	s.emit(ctx, top.Child("critic", "agent_critic_1"), event.Started{}, call, event.Finished{Duration: 2 * time.Second, Error: "secret failure", Code: "limit"})
	s.emit(ctx, top, event.Finished{Duration: 4 * time.Second, Code: "suspended", Error: "it waits"})
}

func TestMeter(t *testing.T) {
	sink := newFiguresSink(t, 200)
	m := startMeter(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+sink.URL, "OTEL_RESOURCE_ATTRIBUTES=team=blue")
	busyRun(t.Context(), newStory(t, m.Emitter()))
	if err := m.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := <-sink.requests
	const chatModel = "gen_ai.operation.name:chat gen_ai.provider.name:anthropic gen_ai.request.model:opus"
	want := []string{
		"gen_ai.client.inference.duration s map[error.type:_OTHER " + chatModel + "] 1: 0.001",
		"gen_ai.client.inference.duration s map[error.type:limit " + chatModel + "] 1: 0.001",
		"gen_ai.client.inference.duration s map[" + chatModel + "] 3: 0.008", // 4 ms; 4 without the wait of 1; 1
		"gen_ai.client.inference.time_per_output_chunk s map[" + chatModel + "] 2: 0.002",
		"gen_ai.client.inference.time_to_first_chunk s map[" + chatModel + "] 1: 0.001",
		"gen_ai.client.inference.usage.cache_read.input_tokens {token} map[" + chatModel + " gen_ai.token.modality:unknown] 5",
		"gen_ai.client.inference.usage.cache_write.input_tokens {token} map[" + chatModel + " gen_ai.token.modality:unknown] 2",
		"gen_ai.client.inference.usage.input_tokens {token} map[" + chatModel + " gen_ai.token.modality:unknown] 36",
		"gen_ai.client.inference.usage.output_tokens {token} map[" + chatModel + " gen_ai.token.modality:text] 9",
		"gen_ai.client.inference.usage.reasoning.output_tokens {token} map[" + chatModel + " gen_ai.token.modality:text] 1",
		"gen_ai.execute_tool.duration s map[error.type:tool gen_ai.tool.name:fs_cat] 1: 0.001",
		"gen_ai.execute_tool.duration s map[gen_ai.tool.name:fs_cat] 1: 0.001",
		"gen_ai.invoke_agent.duration s map[error.type:limit gen_ai.agent.name:critic] 1: 2.000",
		"gen_ai.invoke_agent.duration s map[gen_ai.agent.name:research] 1: 4.000",
		"gen_ai.invoke_agent.inference_calls {inference_call} map[gen_ai.agent.name:critic] 1: 1.000",
		"gen_ai.invoke_agent.inference_calls {inference_call} map[gen_ai.agent.name:research] 1: 4.000",
		"gen_ai.invoke_agent.tool_calls {tool_call} map[gen_ai.agent.name:critic] 1: 0.000",
		"gen_ai.invoke_agent.tool_calls {tool_call} map[gen_ai.agent.name:research] 1: 2.000",
		"loki.limit.refused {refusal} map[gen_ai.provider.name:anthropic gen_ai.request.model:opus] 2",
		"loki.limit.wait s map[gen_ai.provider.name:anthropic gen_ai.request.model:opus] 1: 0.001",
		"loki.node.duration s map[gen_ai.agent.name:research loki.node.type:llm] 1: 0.250",
		"loki.schedule.late s map[loki.schedule.name:morning] 1: 1.500",
	}
	if list := lines(t, got); !slices.Equal(list, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(list, "\n"), strings.Join(want, "\n"))
	}
	resource := attributes(got.ResourceMetrics[0].Resource.Attributes)
	if resource["service.name"] != "loki" || resource["team"] != "blue" || len(resource["service.instance.id"]) < 20 {
		t.Errorf("resource %v", resource)
	}
	if bytes.Contains(sink.body, []byte("secret")) {
		t.Error("texts of models or tools were sent")
	}
	if len(m.facts.Of(event.Event{Body: event.Warning{}})) != 0 || len(sink.requests) != 0 {
		t.Error("there is more than one request, or a fact of nothing")
	}
}

// TestMeterGoesOn: each reading has all figures since the start, again and again, and an answered run is counted once.
func TestMeterGoesOn(t *testing.T) {
	sink := newFiguresSink(t, 200)
	m := startMeter(t, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT="+sink.URL+"/v1/metrics", "OTEL_METRIC_EXPORT_INTERVAL=5")
	s := newStory(t, m.Emitter())
	busyRun(t.Context(), s)
	first := <-sink.requests
	busyRun(t.Context(), s)
	var next *metricspb.MetricsData
	for range cap(sink.requests) {
		if next = <-sink.requests; slices.Contains(lines(t, next), "loki.schedule.late s map[loki.schedule.name:morning] 2: 3.000") {
			break
		}
	}
	if a, b := lines(t, first), lines(t, next); len(a) != len(b) || slices.Equal(a, b) {
		t.Errorf("%q\nand later\n%q", a, b)
	}
	if err := m.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestMeterIsBounded: names that users choose do not fill the memory of collectors.
func TestMeterIsBounded(t *testing.T) {
	sink := newFiguresSink(t, 200)
	m := startMeter(t, "OTEL_METRICS_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_ENDPOINT="+sink.URL)
	s := newStory(t, m.Emitter())
	for i := range 2000 {
		src := event.Source{Run: fmt.Sprint("run", i), Agent: fmt.Sprint("agent", i)}
		id := fmt.Sprint("up:", i)
		s.emit(t.Context(), src, event.Started{Origin: fmt.Sprint("schedule/", i)}, event.ModelCall{Model: id}, event.Reply{Model: id},
			event.ToolCall{ID: "1", Name: id}, event.ToolResult{ID: "1", Name: id}, event.NodeFinished{NodeType: id}, event.Finished{})
	}
	if err := m.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	for len(sink.requests) > 0 {
		n += len(lines(t, <-sink.requests))
	}
	if n == 0 || n > 201*15 {
		t.Errorf("%d series", n)
	}
}

func TestMeterWithoutCollector(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		vars   []string
		want   string
	}{
		{"traces_only", 404, nil, ""},
		{"asked_for", 404, []string{"OTEL_METRICS_EXPORTER=otlp"}, "metrics could not be sent to URL/v1/metrics: HTTP status 404 Not Found"},
		{"refused", 400, nil, "metrics could not be sent to URL/v1/metrics: HTTP status 400 Bad Request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sink := newFiguresSink(t, tt.status)
			m := startMeter(t, append(tt.vars, "OTEL_EXPORTER_OTLP_ENDPOINT="+sink.URL)...)
			busyRun(t.Context(), newStory(t, m.Emitter()))
			said := ""
			if err := m.Shutdown(t.Context()); err != nil {
				said = strings.ReplaceAll(err.Error(), sink.URL, "URL")
			}
			if said != tt.want {
				t.Errorf("error %q, want %q", said, tt.want)
			}
		})
	}
}

func TestMeterAsked(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318"
	for _, tt := range []struct {
		name string
		vars []string
		on   bool
		err  string
	}{
		{name: "nothing"},
		{name: "traces_only", vars: []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://localhost:4318/x"}},
		{name: "endpoint", vars: []string{endpoint, "OTEL_TRACES_SAMPLER=jaeger_remote"}, on: true},
		{name: "none", vars: []string{endpoint, "OTEL_METRICS_EXPORTER=none"}},
		{name: "prometheus", vars: []string{"OTEL_METRICS_EXPORTER=prometheus"}, err: `OTEL_METRICS_EXPORTER: "prometheus" is neither otlp nor none`},
		{name: "interval", vars: []string{endpoint, "OTEL_METRIC_EXPORT_INTERVAL=1m"}, err: `OTEL_METRIC_EXPORT_INTERVAL: "1m" is not a number of milliseconds above 0`},
		{name: "delta", vars: []string{endpoint, "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta"}, err: `OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: metrics are sent as cumulative only, not as "delta"`},
		{name: "grpc", vars: []string{endpoint, "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=grpc"}, err: "metrics cannot be sent as grpc, only as http/protobuf"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := StartMeter(t.Context(), environment(tt.vars...), "")
			said := ""
			if err != nil {
				said = err.Error()
			}
			if (m != nil) != tt.on || said != tt.err || (m.Emitter() != nil) != tt.on {
				t.Errorf("meter %v, error %q", m != nil, said)
			}
			if err := m.Shutdown(t.Context()); err != nil { // nothing was counted
				t.Error(err)
			}
		})
	}
}
