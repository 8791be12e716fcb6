package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"loki/internal/llm/event"
)

// TestParse reads every type of event back: what is written of it is the same again.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, ev := range documented() {
		t.Run(ev.Body.Type(), func(t *testing.T) {
			want := line(t, ev)
			got, err := event.Parse([]byte(want))
			if err != nil {
				t.Fatal(err)
			}
			if again := line(t, got); again != want {
				t.Errorf("read\n%s\nfrom\n%s", again, want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	const clock = `"time":"2026-11-21T09:30:00.000000Z"`
	for _, tt := range []struct {
		name, in string
		unknown  bool
	}{
		{"not_json", `{`, false},
		{"not_an_object", `[]`, false},
		{"without_time", `{"type":"delta","text":"a"}`, false},
		{"wrong_member", `{"type":"delta",` + clock + `,"text":1}`, false},
		{"unknown_type", `{"type":"weather",` + clock + `}`, true},
		{"without_type", `{` + clock + `}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if ev, err := event.Parse([]byte(tt.in)); err == nil || errors.Is(err, event.ErrUnknownType) != tt.unknown {
				t.Errorf("%v, %v", ev, err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, ev := range documented() {
		data, err := json.Marshal(ev)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ev, err := event.Parse(data)
		if err != nil {
			return
		}
		once, err := ev.MarshalJSON()
		if err != nil {
			return // a year or a number that JSON does not have
		}
		again, err := event.Parse(once)
		if err != nil {
			t.Fatalf("%v: %s", err, once)
		}
		if twice, err := again.MarshalJSON(); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%v\n%s\n%s", err, once, twice)
		}
	})
}
