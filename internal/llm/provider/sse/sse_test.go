package sse_test

import (
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"loki/internal/llm/provider/sse"
)

func collect(seq iter.Seq2[sse.Event, error]) (events []sse.Event, err error) {
	for e, err := range seq {
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
	return events, nil
}

func message(data string) sse.Event { return sse.Event{Type: "message", Data: data} }

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []sse.Event
	}{
		{"empty_stream", "", nil},
		{"lf", "data: a\n\ndata: b\n\n", []sse.Event{message("a"), message("b")}},
		{"cr", "data: a\r\rdata: b\r\r", []sse.Event{message("a"), message("b")}},
		{"crlf", "data: a\r\n\r\ndata: b\r\n\r\n", []sse.Event{message("a"), message("b")}},
		{"mixed_line_ends", "data: a\r\n\ndata: b\n\rdata: c\r\r\n", []sse.Event{message("a"), message("b"), message("c")}},
		{"byte_order_mark", "\uFEFFdata: a\n\n", []sse.Event{message("a")}},
		{"second_byte_order_mark_is_part_of_the_field", "\uFEFF\uFEFFdata: a\n\n", nil},
		{"byte_order_mark_later", "data: a\n\n\uFEFFdata: b\n\n", []sse.Event{message("a")}},
		{"lines_joined", "data: a\ndata:  b\ndata\ndata:c\n\n", []sse.Event{message("a\n b\n\nc")}},
		{"one_space_removed", "data:a\n\ndata: a\n\ndata:  a\n\n", []sse.Event{message("a"), message("a"), message(" a")}},
		{"colon_in_value", "data: a:b: c\n\n", []sse.Event{message("a:b: c")}},
		{"comments", ": hello\n\n:\n\ndata: a\n: in between\ndata: b\n\n", []sse.Event{message("a\nb")}},
		{"unknown_fields", "error: x\nDATA: y\n data: z\ndata: a\n\n", []sse.Event{message("a")}},
		{"no_data_no_event", "event: ping\n\ndata: a\n\n", []sse.Event{message("a")}},
		{"data_without_value", "data\n\ndata:\n\n", []sse.Event{message(""), message("")}},
		{"types", "event: add\ndata: 1\n\ndata: 2\n\nevent: a\nevent: b\ndata: 3\n\n", []sse.Event{
			{Type: "add", Data: "1"}, message("2"), {Type: "b", Data: "3"},
		}},
		{"ids_persist", "id: 1\ndata: a\n\ndata: b\n\nid: 2\n\ndata: c\n\nid\ndata: d\n\n", []sse.Event{
			{Type: "message", Data: "a", ID: "1"},
			{Type: "message", Data: "b", ID: "1"},
			{Type: "message", Data: "c", ID: "2"},
			message("d"),
		}},
		{"id_with_null_ignored", "id: 1\nid: 2\x00\ndata: a\n\n", []sse.Event{{Type: "message", Data: "a", ID: "1"}}},
		{"retry_read_over", "retry: 10\ndata: a\n\n", []sse.Event{message("a")}},
		{"cut_off_event_dropped", "data: a\n\ndata: b\n", []sse.Event{message("a")}},
		{"cut_off_line_dropped", "data: a\n\ndata: b", []sse.Event{message("a")}},
		{"end_after_cr", "data: a\n\r", []sse.Event{message("a")}},
		{"multi_byte", "data: Größe €\U0001F600\n\n", []sse.Event{message("Größe €\U0001F600")}},
		{"invalid_utf8", "data: a\xffb\xe2\x82\n\n", []sse.Event{message("a\uFFFDb\uFFFD\uFFFD")}},
		{"null_in_data", "data: a\x00b\n\n", []sse.Event{message("a\x00b")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"at_once":         strings.NewReader(tt.in),
				"byte_by_byte":    iotest.OneByteReader(strings.NewReader(tt.in)),
				"end_with_data":   iotest.DataErrReader(strings.NewReader(tt.in)),
				"half_of_buffers": iotest.HalfReader(strings.NewReader(tt.in)),
			} {
				got, err := collect(sse.Decode(r, 0))
				if err != nil || !slices.Equal(got, tt.want) {
					t.Errorf("%s: got %+v, %v; want %+v", name, got, err, tt.want)
				}
			}
		})
	}
}

// TestDecodeDoesNotWait reads from a stream that stays open: each event comes as
// soon as its last byte is there.
func TestDecodeDoesNotWait(t *testing.T) {
	for _, tt := range []struct{ name, first, second string }{
		{"lf", "data: a\n\n", "data: b\n\n"},
		{"cr", "data: a\r\r", "data: b\r\r"},
		{"crlf_cut_in_the_middle", "data: a\r\n\r", "\ndata: b\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, w := io.Pipe()
			next, stop := iter.Pull2(sse.Decode(r, 0))
			defer stop()
			go func() { // ends with the last write, which the reads below take
				w.Write([]byte(tt.first))
			}()
			if e, err, ok := next(); !ok || err != nil || e.Data != "a" {
				t.Fatalf("first event = %+v, %v, %v", e, err, ok)
			}
			go func() {
				w.Write([]byte(tt.second))
				w.Close()
			}()
			if e, err, ok := next(); !ok || err != nil || e.Data != "b" {
				t.Fatalf("second event = %+v, %v, %v", e, err, ok)
			}
			if e, err, ok := next(); ok {
				t.Fatalf("after the end: %+v, %v", e, err)
			}
		})
	}
}

func TestDecodeLimits(t *testing.T) {
	const limit = 64
	long := strings.Repeat("x", limit)
	for _, tt := range []struct {
		name, in string
		events   int
		tooLarge bool
	}{
		{"line_at_the_limit", "data:" + long[:limit-5] + "\n\n", 1, false},
		{"line_over_the_limit", "data: a\n\ndata:" + long + "\n\ndata: b\n\n", 1, true},
		{"line_without_end", "data: a\n\n" + strings.Repeat(long, 1000), 1, true},
		{"comment_over_the_limit", ":" + long + "\n\n", 0, true},
		{"data_over_the_limit", strings.Repeat("data: "+long[:limit/2]+"\n", 3) + "\n", 0, true},
		{"mark_does_not_count", "\uFEFFdata:" + long[:limit-5] + "\n\n", 1, false},
		{"many_small_events", strings.Repeat("data: a\n\n", 1000), 1000, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				got, err := collect(sse.Decode(r, limit))
				if len(got) != tt.events || errors.Is(err, sse.ErrTooLarge) != tt.tooLarge {
					t.Errorf("%d events, error %v; want %d, too large: %v", len(got), err, tt.events, tt.tooLarge)
				}
			}
		})
	}
}

func TestDecodeReportsReadErrors(t *testing.T) {
	broken := errors.New("connection reset")
	r := io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken))
	got, err := collect(sse.Decode(r, 0))
	if !slices.Equal(got, []sse.Event{message("a")}) || !errors.Is(err, broken) {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = collect(sse.Decode(silent{}, 0))
	if !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("reader that returns nothing: %v", err)
	}
}

// silent is a broken reader that returns neither bytes nor an error.
type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

func TestDecodeStopsWithItsConsumer(t *testing.T) {
	for range sse.Decode(strings.NewReader("data: a\n\ndata: b\n\n"), 0) {
		break
	}
}

// FuzzDecode checks that the way a stream is cut into reads does not change its
// events, and that no event breaks a rule of its own.
func FuzzDecode(f *testing.F) {
	f.Add("data: a\n\ndata: b\n\n", []byte{1, 2, 3})
	f.Add("\uFEFFid: 1\r\nevent: e\r\ndata: ä\r\n\r\n", []byte{1})
	f.Add("data: a\r\r: c\rdata\r\r\n", []byte{7, 1})
	f.Add("data: \xff\xe2\x82\n\n", []byte{3, 2})
	f.Add("data: 0123456789012345678901234567890123456789\n\n", []byte{30})
	f.Fuzz(func(t *testing.T, in string, cuts []byte) {
		const limit = 32
		whole, wholeErr := collect(sse.Decode(strings.NewReader(in), limit))
		cut, cutErr := collect(sse.Decode(&cutReader{rest: in, cuts: cuts}, limit))
		if !slices.Equal(whole, cut) || (wholeErr == nil) != (cutErr == nil) {
			t.Errorf("at once: %q, %v\ncut up:  %q, %v", whole, wholeErr, cut, cutErr)
		}
		for _, e := range whole {
			if e.Type == "" || strings.ContainsRune(e.Data, '\r') || strings.ContainsAny(e.Type+e.ID, "\r\n") {
				t.Errorf("event %q", e)
			}
		}
	})
}

// cutReader returns pieces of the lengths in cuts, over and over.
type cutReader struct {
	rest string
	cuts []byte
	i    int
}

func (r *cutReader) Read(p []byte) (int, error) {
	if r.rest == "" {
		return 0, io.EOF
	}
	n := 1
	if len(r.cuts) > 0 {
		n = max(1, int(r.cuts[r.i%len(r.cuts)]))
		r.i++
	}
	n = copy(p, r.rest[:min(n, len(r.rest))])
	r.rest = r.rest[n:]
	return n, nil
}

func BenchmarkDecode(b *testing.B) {
	const event = `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":" word"}}]}` + "\n\n"
	in := strings.Repeat(event, 1000)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range sse.Decode(strings.NewReader(in), 0) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
